# prony machine --calibrate: every ceiling is found, kept, and never lowered by a second look. Once it was
# seen faster, in a file that is edited here: that is told.

prony=$PRONY_BUILD/prony
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
XDG_CACHE_HOME=$folder
export XDG_CACHE_HOME

"$prony" bench small --seconds 0.02 >/dev/null 2>&1
if command -v python3 >/dev/null && [ -f "$folder/prony/calibration.json" ]; then
    python3 - "$folder/prony/calibration.json" <<'PYTHON'
import json, sys
kept = json.load(open(sys.argv[1]))
kept["ceilings"].append({"ceiling": "read", "isa": "scalar", "threads": 1, "pages": "4k",
                         "set_bytes": 1 << 30, "per_s": 4e14, "spent_ns": 1e9})
json.dump(kept, open(sys.argv[1], "w"))
PYTHON
fi
"$prony" machine --calibrate >"$folder/first.txt" 2>"$folder/errors"
found=$?
if grep -q 'without optimisation' "$folder/errors"; then
    echo "skip calibrate.finds_ceilings: a build without optimisation cannot calibrate"
    exit 0
fi
if [ $found -ne 0 ] || ! grep -q 'GB/s, 1 thread' "$folder/first.txt"; then
    cat "$folder/first.txt" "$folder/errors"
    echo "FAIL calibrate.finds_ceilings"
    exit 1
fi
echo "ok   calibrate.finds_ceilings"
if ! command -v python3 >/dev/null; then
    echo "skip calibrate.keeps_them: no python3"
    exit 0
fi
if grep -q 'Memory was slower this time than it has been: .* GB/s of 400000.0 (read, ' "$folder/first.txt"; then
    echo "ok   calibrate.tells_that_memory_was_slow"
else
    cat "$folder/first.txt"
    echo "FAIL calibrate.tells_that_memory_was_slow"
    exit 1
fi
"$prony" machine --json >"$folder/before.json"
"$prony" bench small --seconds 0.1 >/dev/null 2>&1
"$prony" machine --json >"$folder/after.json"
if python3 - "$folder" <<'PYTHON'; then
import json, sys
def rows(name):
    list = json.load(open(sys.argv[1] + name))["calibration"]["ceilings"]
    return {tuple(row.get(key) for key in ("ceiling", "isa", "threads", "pages", "set_bytes")): row["per_s"]
            for row in list}
before, after = rows("/before.json"), rows("/after.json")
assert len(before) > 100, len(before)
assert all(after[key] >= value > 0 for key, value in before.items())
for (kind, isa, threads, pages, size), per_s in before.items():  # what a larger set reaches, it does
    larger = [value for key, value in before.items() if key[:4] == (kind, isa, threads, pages) and size
              and key[4] > size]
    assert per_s >= max(larger, default=0), (kind, isa, threads, pages, size)
sets = {key[4] for key in before if key[0] == "read"}
assert min(sets) == 16 << 10 and max(sets) >= 1 << 26, sets
PYTHON
    echo "ok   calibrate.keeps_them"
else
    echo "FAIL calibrate.keeps_them"
    exit 1
fi
