# Peers that are broken, each in its way: a failed record with a reason, soon, and prony's own beside.

suite=broken_peers
. tests/shell/command.sh
. tests/shell/relay.sh
for peer in dies hangs garbage floods closes chatters boasts liar; do
    output=$("$prony" bench small --phase inference --framework "prony,tests/peers/$peer/peer" \
        --seconds 0.05 --patience 0.5 --format json 2>/dev/null)
    found=$?
    failed=$(echo "$output" | grep "\"framework\":\"tests/peers/$peer/peer\"" |
        grep -c '"status":"failed","reason":"[^"]')
    right=$(echo "$output" | grep '"framework":"prony"' | grep -c '"verdict":"right"')
    if [ "$found$failed$right" = 111 ]; then
        echo "ok   broken_peers.$peer"
    else
        printf 'status %s, %.1000s\nFAIL broken_peers.%s\n' "$found" "$output" "$peer"
        status=1
    fi
done

# Whoever cannot be started is skipped; what a peer says moves no cursor.
printf '#!/usr/bin/env there-is-no-such-interpreter\n' >"$folder/uninstalled"
cat >"$folder/painter" <<'PEER'
#!/bin/sh
read -r line
printf '%s\n' '{"status":"failed","reason":"one\u001b[2J\ntwo"}'
PEER
printf '%s\n' '#!/bin/sh' 'sleep 60 &' 'read -r line' 'exit 3' >"$folder/leaver"
chmod +x "$folder"/*
expect skips_what_cannot_be_started 0 'left out: it cannot be started: ' \
    "$prony" bench small --framework "$folder/uninstalled" --seconds 0.05
# Once, however many configurations it was to compute; each has its record.
said=$("$prony" bench small --batch 1,2,3 --framework "$folder/uninstalled,prony" --seconds 0.05 \
    --out "$folder/left_out.jsonl" 2>&1)
lines=$(echo "$said" | grep -v '^prony bench ' | grep -c uninstalled)
skips=$(grep "$folder/uninstalled" "$folder/left_out.jsonl" |
    grep -c '"status":"skipped","reason":"it cannot be started: ')
[ "$lines $skips" = "1 3" ]
report says_once_who_is_left_out $? "$lines lines, $skips records: $said"
expect prints_one_line 1 'failed: one\u001b[2J\u000atwo' \
    "$prony" bench small --framework "$folder/painter" --seconds 0.05
expect sees_that_it_ended 1 'failed: the process ended' \
    "$prony" bench small --framework "$folder/leaver" --seconds 0.05 --patience 10

# Whoever breaks when it is done, while its system calls are counted, was timed and right: its record, and
# that of whoever comes after it, are not lost.
for way in 'exit 3' 'sleep 1000'; do
    peer=ends_${way%% *}
    relay "$peer" "grep -q 'TracerPid:.0\$' /proc/\$\$/status || $way"
    output=$("$prony" bench small --phase inference --framework "$folder/$peer,prony" --seconds 0.2 \
        --patience 0.5 --format json 2>&1)
    found=$?
    right=$(echo "$output" | grep -c '"status":"ok".*"verdict":"right"')
    why=$(echo "$output" | grep "\"framework\":\"$folder/$peer\"" |
        grep -c '"system_calls":"not available: ')
    [ "$found$right$why" = 021 ]
    report "keeps_what_ends_late_by_${way%% *}" $? "status $found, $output"
done

# Whoever sleeps does not compute, as whoever others take the CPU from: the note says for how long it did.
relay sleeps 'sleep 0.05'
expect says_what_share_of_a_cpu_it_had 0 'it had a CPU for ' \
    "$prony" bench small --phase inference --framework "$folder/sleeps" --seconds 1

# What takes long to start is compared in one instance.
printf '%s\n' '#!/bin/sh' 'sleep 0.2' "exec '$prony' peer" >"$folder/late"
chmod +x "$folder/late"
expect compares_in_one_instance 0 ' rounds in 1 instance)' \
    "$prony" bench small --against "$folder/late" --seconds 2
exit $status
