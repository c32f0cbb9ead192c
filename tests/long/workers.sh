#!/bin/sh
# Workers that train together: every lesson by 2, 3 and 4 of them in every way, and 100 workers that are
# killed at random moments, some of which share out samples, some the layers. Nothing waits longer than ten seconds, and what was saved ends with the same
# bits as a training that was never killed.

suite=workers
. tests/shell/command.sh
. tests/shell/workers.sh

PRONY_EVERY_WORKER=1 "$PRONY_BUILD/tests/test_workers"
report every_number_in_every_way $? 'test_workers failed'

# An even number of tries shares out samples, an odd one the layers: then any number of workers has the
# same bits.
train() {
    "$prony" train mlp:64-48-32-10 digits --backend simd --threads 1 --epochs 300 --batch 16 "$@"
}
by() {
    if [ $(($1 % 2)) -eq 0 ]; then echo "--parallelism data"; else echo "--parallelism pipeline --micro-batches 4"; fi
}
for kind in 0 1; do
    for workers in 2 3; do
        # shellcheck disable=SC2046 # words
        train --workers $workers $(by $kind) --out "$folder/whole$kind$workers" >/dev/null
    done
done
cmp "$folder/whole12" "$folder/whole13"
report pipelines_are_the_same $? "two and three stages differ"
killed=0
for try in $(seq 100); do
    kind=$((try % 2)) workers=$((2 + try / 2 % 2)) out=$folder/hit$try
    # shellcheck disable=SC2046
    "$prony" train mlp:64-48-32-10 digits --backend simd --threads 1 --epochs 300 --batch 16 --workers $workers \
        $(by $kind) --out "$out" >/dev/null 2>"$folder/err" &
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
    # shellcheck disable=SC2046
    [ -e "$out" ] || train --workers $workers $(by $kind) --out "$out" >/dev/null
    [ $code -eq 0 ] || "$prony" train mlp:64-48-32-10 digits --backend simd --threads 1 --workers $workers $(by $kind) \
        --resume "$out" --out "$out" >/dev/null
    cmp "$folder/whole$kind$workers" "$out"
    report "resumed_is_the_same_$try" $? "the weights differ"
    rm -f "$out"
done
report some_were_killed $((killed < 20)) "only $killed of 100 were killed before they ended"
exit $status
