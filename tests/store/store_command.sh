# prony store, as a person uses it: add, list, show, export, and what it says when something is wrong.

suite=store_command
. tests/shell/command.sh

golden=tests/golden/record.jsonl
store="--store $folder/deep/store.db"

if "$prony" store list 2>&1 | grep -q 'needs SQLite'; then
    says says_what_to_install libsqlite3-0 "$prony" store list
    exit $status
fi
says helps 'prony store add results.jsonl' "$prony" store --help
says says_there_is_no_store 'no store here yet' "$prony" store list $store
says says_it_is_a_folder 'cannot open: Is a directory' "$prony" store list --store "$folder"
says makes_an_empty_one '' "$prony" store create --empty $store
says adds '5 added, 0 there already' "$prony" store add $golden $store
says adds_once '0 added, 5 there already' "$prony" store add $store - <$golden
{ cat $golden; printf '%s' '{"prony":1,"kind":"result","point":{"batch":3}'; } >"$folder/cut.jsonl" # killed while it wrote
says adds_what_is_whole '0 added, 5 there already' "$prony" store add $store "$folder/cut.jsonl"
printf '{"results":[{"command":"sleep 1","times":[1.5,1.6,1.7]}]}' >"$folder/hyperfine.json"
says imports_what_others_wrote '1 added, 0 there already' \
    "$prony" store add "$folder/hyperfine.json" --empty --store "$folder/imported.db"
says lists_what_others_wrote '1.60 s' "$prony" store list --store "$folder/imported.db"
says lists '1.50 µs' "$prony" store list $store
says filters 'no CUDA driver' "$prony" store list $store --where status=skipped --format md
says limits 'the newest 1 of 3' "$prony" store list $store --limit 1
says shows_one '"reason":"no CUDA driver"' "$prony" store show 2 $store
says exports_csv 'id,framework,backend' "$prony" store export --format csv $store
"$prony" store export $store >"$folder/out.jsonl"
if cmp "$folder/out.jsonl" $golden; then
    echo "ok   store_command.exports_what_was_added"
else
    echo "FAIL store_command.exports_what_was_added"
    status=1
fi

{ cat $golden; echo '{"prony":1,"kind":"result"}'; } >"$folder/bad.jsonl"
# impossible NAME WORDS SCRIPT: the golden file after SCRIPT is refused.
impossible() {
    sed "$3" $golden >"$folder/impossible.jsonl"
    says "$1" "$2" "$prony" store add "$folder/impossible.jsonl" --empty --store "$folder/impossible.db"
}
impossible refuses_an_impossible_date 'impossible.jsonl: record 1: at: found "2026-02-30T' \
    's/"at":"[0-9-]*T/"at":"2026-02-30T/'
impossible refuses_a_median_beyond_its_samples 'expected a time among the samples' \
    's/"median":[0-9.e+]*/"median":1e18/'
says names_the_line 'bad.jsonl:6: point: found nothing' \
    "$prony" store add "$folder/bad.jsonl" --empty --store "$folder/new.db"
says adds_all_or_nothing 'no record' "$prony" store list --store "$folder/new.db"
says refuses_no_name "empty text" "$prony" store add $golden --store ""
says refuses_a_word 'expected options only' "$prony" store list small $store
says refuses_a_verb 'expected add, check, create' "$prony" store lst
says refuses_a_key 'did you mean "batch"' "$prony" store list $store --where bacth=1
says refuses_a_format 'expected table, csv, md or json' "$prony" store list $store --format xml
says refuses_a_number 'expected one number' "$prony" store show first $store
if "$prony" store show 99 $store 2>/dev/null; then
    echo "FAIL store_command.exit_status"
    status=1
else
    echo "ok   store_command.exit_status"
fi
if "$prony" store export $store >/dev/full 2>/dev/null; then
    echo "FAIL store_command.full_disk"
    status=1
else
    echo "ok   store_command.full_disk"
fi
# A bench that was killed after it wrote to the file and before it wrote to the store: the next one adds it.
"$prony" bench small --backend ref --batch 1-50 --seconds 0.2 --out "$folder/both.jsonl" --store "$folder/both.db" >/dev/null 2>&1 &
bench=$!
await '"kind":"result"' "$folder/both.jsonl"
kill -KILL $bench
wait $bench 2>/dev/null
sed -n '/"kind":"result"/s/"batch":1,/"batch":77,/p' "$folder/both.jsonl" >"$folder/more"
cat "$folder/more" >>"$folder/both.jsonl"
"$prony" bench small --backend ref --seconds 0.05 --out "$folder/both.jsonl" --store "$folder/both.db" >/dev/null 2>&1
sort "$folder/both.jsonl" | grep '"kind":"result"' >"$folder/in_file"
"$prony" store list --format json --limit 0 --where source=own --store "$folder/both.db" | sort >"$folder/in_store"
[ -s "$folder/more" ] && cmp "$folder/in_file" "$folder/in_store"
report file_and_store_are_made_equal $? "they differ"
# After a bench that ended well nothing is added: what was removed stays so, and another store has what it measures.
"$prony" bench small --backend ref --seconds 0.05 --out "$folder/both.jsonl" --store "$folder/third.db" >/dev/null 2>&1
says other_stores_are_left_alone '1' sh -c "'$prony' store list --format json --limit 0 --where source=own --store '$folder/third.db' | grep -c ."
exit $status
