#!/bin/sh
# Workers that train together: every lesson by 2, 3 and 4 of them in every way, and 100 workers that are
# killed at random moments. Nothing waits longer than ten seconds, and what was saved ends with the same
# bits as a training that was never killed.

suite=workers
. tests/shell/command.sh
. tests/shell/workers.sh

PRONY_EVERY_WORKER=1 "$PRONY_BUILD/tests/test_workers"
report every_number_in_every_way $? 'test_workers failed'

train() { "$prony" train mlp:64-32-10 digits --backend simd --threads 1 --epochs 100 "$@"; }
for workers in 2 3; do
    train --workers $workers --out "$folder/whole$workers" >/dev/null
done
killed=0
for try in $(seq 100); do
    workers=$((2 + try % 2)) out=$folder/hit$try
    "$prony" train mlp:64-32-10 digits --backend simd --threads 1 --epochs 100 --workers $workers --out "$out" \
        >/dev/null 2>"$folder/err" &
    launcher=$!
    await_workers $launcher $workers
    sleep "$(awk -v seed="$try" 'BEGIN { srand(seed); print rand() * 3 }')"
    kill -KILL "$(workers_of $launcher | sed -n "$((try % workers + 1))p")" 2>/dev/null
    from=$(date +%s)
    wait $launcher
    code=$? seconds=$(($(date +%s) - from))
    if [ $code -ne 0 ]; then
        killed=$((killed + 1))
        grep -q 'prony: rank [0-9] (host .*, process [0-9]*)' "$folder/err" && [ "$(wc -l <"$folder/err")" = 1 ]
        report "said_once_$try" $? "$(cat "$folder/err")"
    fi
    report "nothing_waits_$try" $((seconds > 10)) "it took $seconds s to end"
    [ -e "$out" ] || train --workers $workers --out "$out" >/dev/null
    [ $code -eq 0 ] || train --workers $workers --resume "$out" --out "$out" >/dev/null
    cmp "$folder/whole$workers" "$out"
    report "resumed_is_the_same_$try" $? "the weights differ"
    rm -f "$out"
done
report some_were_killed $((killed < 20)) "only $killed of 100 were killed before they ended"
exit $status
