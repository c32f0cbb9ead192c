# Peers that are broken, each in its way: a failed record with a reason, soon, and prony's own beside.

prony=$PRONY_BUILD/prony
status=0
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
exit $status
