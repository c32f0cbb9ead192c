# Profiles that are kept in a store, and prony compare of two.

suite=cli_keep
. tests/shell/command.sh
export XDG_CACHE_HOME="$folder/cache" XDG_DATA_HOME="$folder/data" XDG_CONFIG_HOME="$folder/config"

recorded=tests/trace/recorded
store=$folder/store.db
if ! "$prony" store create --empty --store "$store" 2>"$folder/errors"; then
    echo "skip cli_keep.keeps_a_trace: $(cat "$folder/errors")"
    exit 0
fi
expect keeps_a_trace 0 "kept as profile 1: prony guide --store $store shows it" \
    "$prony" profile $recorded/copy.pageable.trace.gz --store "$store"
expect keeps_another 0 'kept as profile 2' "$prony" profile $recorded/copy.pinned.trace.gz --store "$store"
expect keeps_a_network 0 'kept as profile 3' "$prony" profile small --batch 10 --seconds 0.05 --store "$store"
expect says_how_to_ask_for_advice 0 '"advise":"prony advise small --phase training --batch 10 --backend ' \
    "$prony" store show 3 --store "$store"
expect keeps_in_the_users_store 0 'kept as profile' "$prony" profile --keep $recorded/loader.0.trace.gz
"$prony" profile --json --store "$store" $recorded/item.every.trace.gz >"$folder/profile.json" 2>"$folder/errors"
report says_it_beside_the_object "$(tail -n +2 "$folder/profile.json" | wc -l)" "$(cat "$folder/profile.json")"
expect keeps_whole_records 0 '4 records, all whole' "$prony" store check --store "$store"
if [ -f "$PRONY_BUILD/libprony_agent.so" ]; then
    expect keeps_a_program 0 'kept as profile 5' "$prony" profile --once --store "$store" -- sleep 0.2
else
    echo "skip cli_keep.keeps_a_program: no agent in this build"
fi

# They travel as other records do.
"$prony" store export --store "$store" >"$folder/all.jsonl"
"$prony" store create --empty --store "$folder/other.db"
expect travels 0 ' added, 0 there already' "$prony" store add "$folder/all.jsonl" --store "$folder/other.db"
sed -n 1p "$folder/all.jsonl" | sed 's/"compute":[0-9]*/"compute":1/' >"$folder/bad.jsonl"
expect refuses_a_budget_that_does_not_sum 2 'expected them to sum to the window' \
    "$prony" store add "$folder/bad.jsonl" --store "$folder/other.db"
expect is_no_larger_than_a_line 0 '' awk 'length($0) > 3145728 { exit 1 }' "$folder/all.jsonl"

# Two profiles, kept or not.
expect compares_files 0 'a step takes 3.58 ms instead of 16.4 ms: 12.8 ms gained, 4.57 × as fast' \
    "$prony" compare $recorded/copy.pageable.trace.gz $recorded/copy.pinned.trace.gz
expect compares_kept_ones 0 'exposed copy ' "$prony" compare 1 2 --store "$store"
[ "$("$prony" compare 1 2 --store "$store")" = \
    "$("$prony" compare $recorded/copy.pageable.trace.gz $recorded/copy.pinned.trace.gz)" ]
report compares_both_alike $? "$("$prony" compare 1 2 --store "$store")"
expect matches_layers 0 'dense1 ' "$prony" compare 3 3 --store "$store"
expect compares_traces_of_json 0 'ops and kernels' "$prony" compare $recorded/ort.json.gz $recorded/ort.json.gz
expect wants_two_of_a_kind 2 'is a profile and' "$prony" compare 1 "$folder/all.jsonl" --store "$store"
expect says_what_is_not_there 2 '99' "$prony" compare 1 99 --store "$store"
"$prony" bench small --batch 1 --backend ref --seconds 0.02 --store "$store" >/dev/null 2>&1
id=$("$prony" store list --store "$store" | awk 'NR > 1 && $1 ~ /^[0-9]+$/ { print $1; exit }')
expect says_what_is_no_profile 2 'is no profile, expected one that prony profile --keep has kept' \
    "$prony" compare 1 "${id:-6}" --store "$store"
if command -v python3 >/dev/null; then
    "$prony" compare 1 2 --store "$store" --json >"$folder/compared.json"
    python3 - "$folder/compared.json" <<'PYTHON'
import json, sys
compared = json.load(open(sys.argv[1]))
for side in "before", "after":
    parts = sum(part[side + "_ns"] or 0 for part in compared["budget"])
    assert parts > 3e6, parts
change = sum(part["change_ns"] for part in compared["budget"])
assert abs(change - (compared["lost_ns"] - compared["gained_ns"])) > 1e6  # the rows are compute only
changes = [abs(row["change_ns"]) for row in compared["rows"]]
assert changes == sorted(changes, reverse=True) and len(changes) > 10, changes
assert compared["per"] == "step" and compared["before"]["unwatched"]
PYTHON
    report writes_json $? "$(cat "$folder/compared.json")"
fi
exit $status
