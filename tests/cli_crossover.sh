# prony bench --find-crossover, with a plugin that has a GPU but no kernels: what each unit is asked for.

suite=cli_crossover
. tests/shell/command.sh
if ! command -v cc >/dev/null; then
    echo "skip cli_crossover: no C compiler to make a plugin with"
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
cc -std=gnu11 -Isrc -shared -fPIC -o "$folder/prony_idle.so" "$folder/idle.c" || exit 2

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
exit $status
