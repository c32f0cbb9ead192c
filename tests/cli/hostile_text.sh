# What files and records say reaches neither the terminal as control characters nor a spreadsheet as a formula.

suite=hostile_text
. tests/shell/command.sh

if "$prony" store list 2>&1 | grep -q 'needs SQLite'; then
    echo "skip $suite: SQLite is not installed"
    exit 0
fi
store="--store $folder/store.db"
escape=$(printf '\033') bell=$(printf '\007') csi=$(printf '\302\233')

# clean NAME COMMAND…: no control character in what it says, and it says where one was.
clean() {
    name=$1
    shift
    output=$("$@" 2>&1)
    case $output in
    *"$escape"* | *"$bell"* | *"$csi"*) report "$name" 1 "found a control character in: $output" ;;
    *u001b*) report "$name" 0 ;;
    *) report "$name" 1 "found \"$output\", expected \\u001b" ;;
    esac
}
"$prony" store create --empty $store
printf '%s\n' '{"prony":1,"kind":"result","point":{"model":"\u001b]0;x\u0007'"$csi"'2J","framework":"=cmd|x","backend":"@sum","batch":1},"status":"ok","result":{"time_ns":{"median":5},"throughput":-2},"reason":"+1+1"}' >"$folder/bad.jsonl"
says adds '1 added' "$prony" store add "$folder/bad.jsonl" $store
clean table "$prony" store list $store
clean csv "$prony" store list --format csv $store
clean markdown "$prony" store list --format md $store
clean query "$prony" query --x model --y time_median $store
clean drawing "$prony" query --x batch --y time_median --group-by model $store
clean answer "$prony" answer "$(printf '\033]0;x\007')" --minutes 0 $store
clean names_a_file "$prony" store add "$(printf '%s/\033[2J' "$folder")" $store
clean quotes_a_file "$prony" explain "$(printf 'mlp:4-\033[2J')"
clean unknown_command "$prony" "$(printf '\033[2J')"
printf '\033[2J 3\n' >"$folder/bad.net"
clean quotes_a_network "$prony" explain "$folder/bad.net"
csv=$("$prony" store export --format csv $store)
holds formula_is_text "$csv" ",'=cmd|x,'@sum,"
holds sum_is_text "$csv" ",'+1+1"
holds negative_number_stays "$csv" ",-2,"
"$prony" store export $store >"$folder/out.jsonl"
cmp -s "$folder/out.jsonl" "$folder/bad.jsonl"
report export_is_exact $? "the export differs from what was added"
# A character that is cut between two writes of a long line arrives whole.
long=$(awk 'BEGIN { printf "x"; for (i = 0; i < 9000; i++) printf "µ" }')
printf '{"prony":1,"kind":"result","point":{"batch":2},"status":"failed","reason":"%s"}\n' "$long" >"$folder/long.jsonl"
"$prony" store add "$folder/long.jsonl" $store >/dev/null
case $("$prony" store list --where batch=2 --format md $store 2>&1) in
*'\x'*) report whole_characters 1 "found a cut character" ;;
*"$long"*) report whole_characters 0 ;;
*) report whole_characters 1 "found another text" ;;
esac
exit $status
