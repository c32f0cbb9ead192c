#!/bin/sh
# prony train --workers N as a user runs it: several processes learn as one does, and what happens to
# one of them ends all, loses nothing and is said once.
suite=cli_workers
. tests/shell/command.sh
. tests/shell/workers.sh

train() { "$prony" train mlp:64-32-10 digits --backend simd --threads 1 "$@"; }

one=$(train --epochs 3 | grep -o 'epoch 3 of 3, loss [0-9.]*, accuracy [0-9.]*')
for workers in 2 3; do
    says as_one_by_$workers "$one" train --epochs 3 --workers $workers
done
expect it_says_how_many 0 '2 workers, 1 thread each' train --epochs 1 --workers 2
says batch_norm_may_see_all 'test accuracy' "$prony" train lenet synthetic:64x784:10 --epochs 1 \
    --workers 2 --sync-norm
says other_recipes_too 'test loss' "$prony" train gan ring:200 --epochs 2 --workers 2

# What cannot work is refused in one line.
expect a_batch_for_each 2 'prony: iris: found 20 workers and batches of 8 samples, expected' \
    "$prony" train small iris --workers 20
expect no_such_number 2 "prony: --workers" "$prony" train small iris --workers 0
expect one_line_for_all 2 "there is no network 'nothing'" "$prony" train nothing iris --workers 3
lines=$("$prony" train nothing iris --workers 3 2>&1 | wc -l)
report said_once "$((lines != 1))" "found $lines lines, expected 1"

# A worker is killed: all end, the message names it, and what was saved goes on bit for bit.
# The network is wide, so that the training lasts for seconds.
wide() { "$prony" train mlp:64-512-512-10 digits --backend simd --threads 1 --epochs 60 --workers 2 "$@"; }
wide --out "$folder/whole" >/dev/null
hit KILL 1 2 "$folder/hit" "$prony" train mlp:64-512-512-10 digits --backend simd --threads 1 --epochs 60 \
    --workers 2 --out "$folder/hit"
holds a_killed_worker_is_named "$said" "prony: rank 1 (host $(uname -n), process "
holds how_to_go_on "$said" "--workers 2 --resume $folder/hit --out $folder/hit"
report nothing_waits "$((seconds > 5 || code != 1))" "$seconds s, status $code: $said"
lines=$(echo "$said" | wc -l)
report killed_is_said_once "$((lines != 1))" "found $lines lines: $said"
wide --resume "$folder/hit" --out "$folder/hit" >/dev/null
cmp "$folder/whole" "$folder/hit"
report resumed_is_the_same $? "the resumed training differs from the one that was never killed"

# One that hangs is noticed.
hit STOP 0 2 "$folder/stop" "$prony" train mlp:64-32-10 digits --backend simd --threads 1 --epochs 4000 \
    --workers 2 --worker-patience 1 --out "$folder/stop"
holds a_hung_worker_is_named "$said" "prony: rank 0 (host $(uname -n), process "
report a_hung_worker_is_noticed "$((seconds > 8 || code != 1))" "$seconds s, status $code: $said"

# Whoever is asked to stop saves; another number of workers goes on.
"$prony" train mlp:64-32-10 digits --backend simd --threads 1 --epochs 4000 --workers 2 --out "$folder/asked" \
    >/dev/null 2>"$folder/err" &
launcher=$!
await_workers $launcher 2
sleep 0.5
kill -TERM $launcher
wait $launcher
report asked_to_stop "$(($? != 130))" "$(cat "$folder/err")"
holds it_says_how_to_go_on "$(cat "$folder/err")" '; saved. To go on: prony train mlp:64-32-10 digits'
epoch=$(sed -n 's/.*after epoch \([0-9]*\).*/\1/p' "$folder/err")
expect three_go_on 0 "epoch $((epoch + 2)) of $((epoch + 2))" "$prony" train mlp:64-32-10 digits --backend simd \
    --threads 1 --epochs $((epoch + 2)) --workers 3 --resume "$folder/asked"
exit $status
