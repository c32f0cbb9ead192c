# What goes wrong on a GPU: each time one line that says what to do, and the GPU can be used by the next
# process. Where there is none, what can be asked without is asked, and the rest is skipped.

suite=gpu_errors
. tests/shell/command.sh

# says NAME PART COMMAND…: it fails, in one line of prony's that contains PART.
says() {
    name=$1 part=$2
    shift 2
    output=$("$@" 2>&1)
    found=$?
    line=$(printf '%s\n' "$output" | grep '^prony: ')
    held=1
    case $line in *"$part"*) [ $found -eq 1 ] && [ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] && held=0 ;; esac
    report "$name" $held "status $found, expected 1; found \"$output\", expected a line \"…$part…\""
}

# A plugin of another version, beside a prony of its own.
if command -v cc >/dev/null; then
    cp "$prony" "$folder/prony" || exit 2
    cat >"$folder/older.c" <<'C'
struct backend { int abi; const char *name, *unit; } backend = {1, "cuda", "gpu"};
struct { int abi; const void *backend; void (*share)(void *); } prony_plugin = {1, &backend, 0};
C
    cc -shared -fPIC -o "$folder/prony_cuda.so" "$folder/older.c" || exit 2
    says a_plugin_of_another_version 'is of another version (1, expected ' \
        "$folder/prony" train small iris --backend cuda
else
    echo "skip $suite.a_plugin_of_another_version: cc is not installed"
fi

# Explained on paper, where there is none, by either name.
if named=$("$prony" explain large --batch 3 --phase training --backend cuda 2>/dev/null); then
    holds a_unit_is_explained_as_its_backend "$("$prony" explain large --batch 3 --phase training --unit gpu 2>&1)" "$named"
else
    echo "skip $suite.a_unit_is_explained_as_its_backend: the plugin is not in this build"
fi

reason=$("$prony" train small iris --backend cuda --epochs 1 2>&1 | sed -n 's/^prony: //p')
if [ "$reason" ]; then
    for name in no_gpu_is_seen none_of_this_name out_of_memory data_that_do_not_fit_are_overlapped no_room_to_begin \
        cudnn_takes_what_it_needs two_processes_at_once the_other_of_them a_killed_process \
        a_killed_process_whose_kernel_waits the_gpu_can_be_used_afterwards; do
        echo "skip $suite.$name: $reason"
    done
    exit $status
fi

says no_gpu_is_seen 'the NVIDIA driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES' \
    env CUDA_VISIBLE_DEVICES= "$prony" train small iris --backend cuda --epochs 1
says none_of_this_name 'the NVIDIA driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES' \
    env CUDA_VISIBLE_DEVICES=none "$prony" train small iris --backend cuda --epochs 1
says out_of_memory 'a smaller batch or network needs less' \
    "$prony" train mlp:1-65536-1 synthetic:2000000x1 --backend cuda --batch 1000000 --epochs 1

# Beside a process that has all of the GPU's memory but so many MiB.
if command -v python3 >/dev/null; then
    cat >"$folder/take.py" <<'PY'
import ctypes, sys, time
cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
size = free.value - (int(sys.argv[1]) << 20)
while size > 0 and cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)):
    size -= 4 << 20
print("taken", flush=True)
time.sleep(30)
PY
    beside() { # MIB CHECK…
        python3 "$folder/take.py" "$1" >"$folder/taken" &
        taker=$!
        shift
        await taken "$folder/taken"
        "$@"
        kill $taker
        wait $taker 2>/dev/null
    }
    beside 850 expect data_that_do_not_fit_are_overlapped 0 'accuracy' \
        "$prony" train mlp:784-64-10 synthetic:70000x784:10 --backend cuda --batch 64 --epochs 1
    beside 400 says no_room_to_begin 'not even what CUDA needs to begin is free' "$prony" train small iris --backend cuda --epochs 1
    lenet="train lenet synthetic:128x784:10 --backend cudnn --precision tf32 --batch 64 --epochs 1"
    if reason=$("$prony" $lenet 2>&1); then
        beside 1300 expect cudnn_takes_what_it_needs 0 'accuracy' "$prony" $lenet
    else
        echo "skip $suite.cudnn_takes_what_it_needs: $reason"
    fi
else
    for name in data_that_do_not_fit_are_overlapped no_room_to_begin cudnn_takes_what_it_needs; do
        echo "skip $suite.$name: python3 is not installed"
    done
fi

# Both want all multiprocessors, and take turns.
"$prony" bench large --batch 3 --backend cuda --seconds 0.5 >"$folder/beside" 2>&1 &
other=$!
resident="bench large --phase inference --batch 1 --scenario resident --backend cuda"
expect two_processes_at_once 0 'correct' "$prony" $resident --seconds 0.5
wait $other && grep -q 'correct' "$folder/beside"
report the_other_of_them $? "$(cat "$folder/beside")"

# killed NAME PART: the last process that was started, in the middle of its work: its log has PART.
killed() {
    kill -9 $!
    wait $! 2>/dev/null
    [ $? -eq 137 ] && grep -q -e "$2" "$folder/log"
    report "$1" $? "$(cat "$folder/log")"
}
"$prony" train large synthetic:3000x4 --backend cuda --batch 3 --epochs 1000 >"$folder/log" 2>&1 &
await '^epoch ' "$folder/log"
killed a_killed_process '^epoch '
echo asks >"$folder/log"
"$prony" $resident --seconds 30 >>"$folder/log" 2>&1 &
sleep 3
killed a_killed_process_whose_kernel_waits '^asks'
expect the_gpu_can_be_used_afterwards 0 'correct' \
    "$prony" bench large --batch 3 --backend cuda --seconds 0.1
exit $status
