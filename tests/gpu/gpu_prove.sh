# Advice for programs of PyTorch on a GPU, proved: by a lever, and against the program after the change. A
# proof runs a program eight times, and each starts Python anew: about a minute each. Skipped where there
# is no GPU.

suite=gpu_prove
. tests/shell/command.sh
if [ ! -e /dev/nvidiactl ] || ! python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))'; then
    echo "skip $suite: there is no GPU, or no PyTorch"
    exit 0
fi
# proves NAME OPTIONS… -- WAY STEPS: the first proof says so.
proves() {
    name=$1
    shift
    "$prony" advise --rounds 2 --store "$folder/proofs.db" "$@" >"$folder/$name.out" 2>&1
    grep -h -A1 -e '^[0-9]  R' -e '^expected' "$folder/$name.out" | sed "s/^/$name: /"
    grep -q '^expected.*· proved' "$folder/$name.out"
    report "$name" $? "$(tail -n 25 "$folder/$name.out")"
}
program="$(command -v python3) tests/gpu/watched.py"
# shellcheck disable=SC2086
proves pinned_copies --against "$program pinned 1 60" -- $program pageable 1 60
# shellcheck disable=SC2086
proves tf32 --prove --lever tf32 -- $program fp32 1 40
exit $status
