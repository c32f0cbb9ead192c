# Programs of PyTorch, CuPy and JAX watched on a GPU: as many kernels as torch.profiler counts, as much
# time, at less cost, and the first finding is what is slow in each. Skipped where there is no GPU.
#
#   gpu_watch.sh [WAY…]    some of them; with GPU_WATCH_KEEP=FOLDER its traces stay there, packed

suite=gpu_watch
. tests/shell/command.sh
if [ ! -e /dev/nvidiactl ] || ! python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))'; then
    echo "skip $suite: there is no GPU, or no PyTorch"
    exit 0
fi
python3 tests/gpu/gpu_watch.py "$prony" "$folder" "$@"
report watches_programs_on_the_gpu $? 'see above'
if [ -n "$GPU_WATCH_KEEP" ]; then
    mkdir -p "$GPU_WATCH_KEEP" && tar -czf "$GPU_WATCH_KEEP/watch.tar.gz" -C "$folder" .
fi
exit $status
