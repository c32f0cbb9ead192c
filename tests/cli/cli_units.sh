# CPU or GPU, with a plugin that has a GPU but no kernels: what each unit is asked for by --find-crossover, and
# what prony train says of results of both.

suite=cli_units
. tests/shell/command.sh
if ! command -v cc >/dev/null; then
    echo "skip cli_units: no C compiler to make a plugin with"
    exit 0
fi
cp "$prony" "$folder/prony" || exit 2
cat >"$folder/idle.c" <<'C'
#include "core/backend.h"
static enum status probe(void) { return STATUS_OK; }
static enum status open_none(const struct device_options *options, struct device **out)
{
    (void)options, (void)out;
    return STATUS_UNSUPPORTED;
}
static const struct backend idle = {.abi = BACKEND_ABI, .name = "idle", .unit = "gpu",
                                    .probe = probe, .open = open_none};
static void share(struct error *(*host_last)(void)) { (void)host_last; }
const struct plugin prony_plugin = {BACKEND_ABI, &idle, share, NULL};
C
cc -std=gnu11 -Isrc -I"$PRONY_BUILD/generated" -shared -fPIC -o "$folder/prony_idle.so" "$folder/idle.c" || exit 2

# asked PRECISIONS: "unit precision" of each record, once.
asked() {
    "$folder/prony" bench mlp:4-3-1 --find-crossover --phase inference --batch 1 --threads 1 --backend simd,idle \
        --seconds 0.02 --precision "$1" --format json | sed -n \
        's/.*"kind":"result".*"precision":"\([a-z0-9]*\)".*"unit":"\([a-z]*\)".*/\2 \1/p' | sort -u | paste -sd ,
}
holds asks_both_for_fp32 "$(asked fp32)" 'cpu fp32,gpu fp32'
holds leaves_the_cpu_in_fp32 "$(asked bf16)" 'cpu fp32,gpu bf16'
holds asks_the_cpu_for_nothing_else "$(asked fp32,bf16)" 'cpu fp32,gpu bf16,gpu fp32'
holds asks_the_gpu_for_what_was_named "$(asked bf16,tf32)" 'cpu fp32,gpu bf16,gpu tf32'
expect refuses_another_precision 2 'fp33' "$folder/prony" bench small --find-crossover --precision fp33

# Where this machine's own results say that the GPU is faster, who has not chosen is told.
if "$prony" store list 2>&1 | grep -q 'needs SQLite'; then
    echo "skip $suite.tells_who_has_not_chosen: SQLite is not installed"
    exit $status
fi
XDG_DATA_HOME=$folder/data
export XDG_DATA_HOME
store=$XDG_DATA_HOME/prony/store.db
mkdir -p "$XDG_DATA_HOME/prony"
"$prony" bench small --phase training --batch 8 --seconds 0.05 --out "$folder/cpu.jsonl" >"$folder/out" 2>&1
grep '"kind":"result"' "$folder/cpu.jsonl" |
    sed 's/"unit":"cpu"/"unit":"gpu"/; s/"backend":"simd"/"backend":"idle"/; s/"throughput":[^,]*/"throughput":1e12/' \
        >"$folder/gpu.jsonl"
trains() { "$folder/prony" train small iris --epochs 1 "$@" 2>&1; }
advice='samples a second, as measured here: --unit gpu'
silent() { # NAME ARGUMENTS…
    name=$1
    shift
    output=$(trains "$@")
    case $output in *"$advice"* | *failed*) false ;; *'test accuracy'* | *'test loss'*) true ;; *) false ;; esac
    report "$name" $? "$output"
}
silent says_nothing_without_a_store
"$prony" store add "$folder/cpu.jsonl" --store "$store" >"$folder/out" 2>&1
silent says_nothing_of_one_unit
"$prony" store add "$folder/gpu.jsonl" --store "$store" >"$folder/out" 2>&1
cores=$(sed -n 's/.*"cores":\([0-9]*\).*/\1/p' "$folder/cpu.jsonl" | head -1)
[ "$cores" -eq 1 ] || silent says_nothing_of_a_part_of_a_cpu
"$prony" bench small --phase training --batch 8 --threads "$cores" --seconds 0.05 --store "$store" >"$folder/out" 2>&1
holds tells_who_has_not_chosen "$(trains)" "$advice"
silent says_nothing_of_another_batch --batch 16
silent says_nothing_to_who_has_chosen --unit cpu
rm "$folder/prony_idle.so"
silent says_nothing_without_a_gpu
exit $status
