# Every command that an answer or a record of the guide suggests is one that prony takes: it may be skipped for
# want of a GPU, but it is not refused.

suite=suggested
. tests/shell/command.sh

if "$prony" guide --help 2>&1 | grep -q 'built without' || ! command -v curl >/dev/null; then
    echo "skip $suite: it needs the guide and curl"
    exit 0
fi
"$prony" bench small --batch 1,8 --threads 1,2 --seconds 0.05 --store "$folder/store.db" >/dev/null 2>&1
: >"$folder/log"
"$prony" guide --port 0 --store "$folder/store.db" >"$folder/log" 2>&1 &
guide=$!
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    port=$(sed -n 's/.*localhost:\([0-9]*\).*/\1/p' "$folder/log")
    [ -n "$port" ] && break
    sleep 0.5
done
for question in 'answers?model=small' 'answers?model=large' 'answers?model=large&unit=gpu' record/1 record/30 record/300; do
    curl -s "http://localhost:$port/api/$question" | grep -o '"command":"[^"]*"' | sed 's/^"command":"prony //; s/"$//'
done | sort -u >"$folder/commands"
kill -INT "$guide"
wait "$guide"
[ "$(wc -l <"$folder/commands")" -ge 10 ]
report finds_commands $? "found $(cat "$folder/commands" "$folder/log")"
refused=
while read -r line; do
    eval "set -- $(printf '%s' "$line" | sed 's/\*/\\*/g')"
    timeout -k 0.2 0.6 "$prony" "$@" </dev/null >"$folder/said" 2>&1
    [ $? -eq 2 ] && refused="$refused
prony $line: $(tail -1 "$folder/said")"
done <"$folder/commands"
[ -z "$refused" ]
report refuses_none $? "refused: $refused"
exit $status
