# The floor of the hour: while another process takes memory's bandwidth, the same build is further from its
# floor (times_floor), and as far as before from what memory gives (times_now); the table says so.
# Needs two CPUs, one for the other process, and nobody else on them.

prony=$PRONY_BUILD/prony
folder=$(mktemp -d)
hog=
trap 'kill $hog 2>/dev/null; rm -rf "$folder"' EXIT
export XDG_CACHE_HOME="$folder"

skip() {
    echo "skip floor_now: $1"
    exit 0
}
[ "$(nproc)" -ge 2 ] || skip "one CPU"
command -v python3 >/dev/null || skip "no python3"
cat >"$folder/hog.c" <<'C'
#include <stdlib.h>
#include <string.h>
int main(void)
{
    const size_t bytes = (size_t)256 << 20;
    char *from = malloc(bytes), *to = malloc(bytes);
    for (memset(from, 1, bytes); from && to; memcpy(from, to, bytes))
        memcpy(to, from, bytes);
    return 0;
}
C
cc -O2 -o "$folder/hog" "$folder/hog.c" 2>/dev/null || skip "no C compiler"

# Weights of 151 MB, which no cache here keeps: reading them is all that an inference does.
wide=mlp:3072-3072-3072-3072-3072:relu
bench() {
    "$prony" bench $wide --phase inference --threads 1 --seconds 4 --out "$folder/$1.jsonl" >"$folder/$1.txt" 2>&1
}

bench warm # finds the ceilings
bench alone
"$folder/hog" &
hog=$!
bench beside
kill $hog
hog=
python3 - "$folder" <<'PYTHON'
import json, sys
def figures(name):
    for line in open(f"{sys.argv[1]}/{name}.jsonl"):
        record = json.loads(line)
        if record["kind"] == "result":
            return record["result"], record.get("reason") or ""
alone, _ = figures("alone")
beside, reason = figures("beside")
for name, result in ("alone", alone), ("beside", beside):
    print(f"  {name}: times_floor {result['times_floor']:.2f}, times_now {result.get('times_now', 0):.2f}")
table = open(f"{sys.argv[1]}/beside.txt").read()
grown = beside["times_floor"] / alone["times_floor"]
if grown < 1.15:
    print(f"skip floor_now.follows_memory: the other process took only {100 * (1 - 1 / grown):.0f} % of the bandwidth")
    sys.exit()
moved = beside["times_now"] / alone["times_now"]
print("ok   " if abs(moved - 1) < 0.15 and moved < grown else "FAIL ", end="")
print(f"floor_now.follows_memory (times_floor × {grown:.2f}, times_now × {moved:.2f})")
told = f"({beside['times_now']:.2f})" in table and "less than at its best" in reason
print("ok   floor_now.is_told" if told else table + "FAIL floor_now.is_told")
PYTHON
