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

reason=$("$prony" train small iris --backend cuda --epochs 1 2>&1 | sed -n 's/^prony: //p')
if [ "$reason" ]; then
    for name in no_gpu_is_seen out_of_memory a_killed_process the_gpu_can_be_used_afterwards; do
        echo "skip $suite.$name: $reason"
    done
    exit $status
fi

says no_gpu_is_seen 'the NVIDIA driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES' \
    env CUDA_VISIBLE_DEVICES= "$prony" train small iris --backend cuda --epochs 1
says out_of_memory 'a smaller batch needs less' \
    "$prony" train mlp:1-65536-1 synthetic:2000000x1 --backend cuda --batch 1000000 --epochs 1

"$prony" train large synthetic:3000x4 --backend cuda --batch 3 --epochs 1000 >"$folder/log" 2>&1 &
await '^epoch ' "$folder/log"
kill -9 $!
wait $! 2>/dev/null
[ $? -eq 137 ] && grep -q '^epoch ' "$folder/log"
report a_killed_process $? "$(cat "$folder/log")"
expect the_gpu_can_be_used_afterwards 0 'right' \
    "$prony" bench large --batch 3 --backend cuda --seconds 0.1
exit $status
