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

# The mean of parameters after each step of sgd is that of gradients; after more it is something else,
# which goes on bit for bit where it was saved.
says as_one_by_means "$one" train --epochs 3 --workers 3 --average-every 1
apart() { train --batch 24 --optimiser adam --workers 2 --average-every 5 --out "$@" >/dev/null; }
apart "$folder/apart" --epochs 3
apart "$folder/halved" --epochs 2
"$prony" train mlp:64-32-10 digits --backend simd --threads 1 --workers 2 --average-every 5 --epochs 3 \
    --resume "$folder/halved" --out "$folder/halved" >/dev/null
cmp "$folder/apart" "$folder/halved"
report means_go_on $? "the resumed training differs from the one that was not stopped"
expect means_are_of_data 2 'prony: --average-every: found --parallelism model, expected data' \
    "$prony" train small iris --workers 2 --parallelism model --average-every 2

# The network itself may be split. A pipeline gives the bits of one worker with the same micro-batches,
# also of the last, smaller batch of an epoch.
deep() { "$prony" train mlp:64-32-24-16-10 digits --backend simd --threads 1 --epochs 3 --batch 20 "$@"; }
for workers in 1 2 4; do
    deep --parallelism pipeline --micro-batches 5 --workers $workers --out "$folder/pipe$workers" \
        >/dev/null
    cmp "$folder/pipe1" "$folder/pipe$workers"
    report a_pipeline_of_$workers $? "its weights differ from one worker's"
done
deep --parallelism pipeline --micro-batches 5 --workers 3 --pipeline gpipe --out "$folder/gpipe" >/dev/null
cmp "$folder/pipe1" "$folder/gpipe"
report all_forwards_first $? "its weights differ from one worker's"
one=$(deep | grep -o 'epoch 3 of 3, loss [0-9.]*, accuracy [0-9.]*')
for workers in 2 3; do
    says as_one_by_model_of_$workers "$one" deep --parallelism model --workers $workers
done
# Copies of a split network take parts of every batch, also of the last, smaller one.
for way in data-pipeline data-model; do
    says as_one_by_$way "$one" deep --parallelism $way --workers 4
done
thirds() { "$prony" train mlp:64-32-24-16-10 digits --backend simd --threads 1 --epochs 3 --batch 21 "$@"; }
says as_one_by_three_copies "$(thirds | grep -o 'epoch 3 of 3, loss [0-9.]*, accuracy [0-9.]*')" \
    thirds --parallelism data-pipeline --workers 6 --copies 3
expect it_says_how_many_copies 0 '4 workers, 1 thread each, 2 copies of the network, pipeline of 2 micro-batches' \
    deep --parallelism data-pipeline --workers 4 --micro-batches 2
expect copies_need_workers 2 'prony: --parallelism data-pipeline: found 3 workers, expected two copies' \
    "$prony" train small iris --workers 3 --parallelism data-pipeline
expect copies_divide_workers 2 'prony: --copies: found 3 for 4 workers, expected two copies' \
    "$prony" train small iris --workers 4 --parallelism data-model --copies 3
expect copies_divide_batches 2 'prony: small: found batches of 7 samples and 2 copies of the network' \
    "$prony" train small iris --workers 4 --batch 7 --parallelism data-model
expect copies_are_of_products 2 'prony: --copies: found --parallelism pipeline, expected data-model or' \
    "$prony" train small iris --workers 4 --parallelism pipeline --copies 2
expect it_says_how_it_is_split 0 '2 workers, 1 thread each, pipeline of 4 micro-batches, 1f1b' \
    deep --parallelism pipeline --workers 2 --micro-batches 4
expect stages_need_layers 2 'prony: small: found 9 stages, expected at most 4' \
    "$prony" train small iris --workers 9 --parallelism pipeline
expect micro_batches_divide 2 'prony: --micro-batches: found 3, expected a number that divides the batch of 7' \
    "$prony" train small iris --workers 2 --batch 7 --parallelism pipeline --micro-batches 3
expect micro_batches_are_named 2 'found 30, expected a number that divides the batch of 100: 50, or --batch 120' \
    "$prony" train small iris --workers 2 --batch 100 --parallelism pipeline --micro-batches 30
expect recipes_have_one_loss 2 'prony: gan: found the recipe gan, expected feed_forward' \
    "$prony" train gan ring:200 --workers 2 --parallelism pipeline
expect a_known_way 2 \
    "prony: --parallelism: found 'both', expected data, model, pipeline, data-model, data-pipeline, server" \
    "$prony" train small iris --workers 2 --parallelism both
expect a_known_order 2 "prony: --pipeline: found 'zigzag', expected 1f1b or gpipe" \
    "$prony" train small iris --workers 2 --parallelism pipeline --pipeline zigzag
expect sync_norm_is_for_data 2 'prony: --sync-norm: found --parallelism model, expected data' \
    "$prony" train small iris --workers 2 --parallelism model --sync-norm

# A worker of a split network takes less memory than one that has it all. Where a unit has no room for
# the whole, the training goes without its test.
outgrown="mlp:1500-1500-1500-1500-1500-10 synthetic:64x1500:10 --backend simd --threads 1 --epochs 1 --batch 32"
outgrown="$outgrown --optimiser adam"
if command -v python3 >/dev/null; then
    peak() { # kB of the largest process
        python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$prony" train $outgrown --test 0 "$@"
    }
    alone=$(peak) staged=$(peak --workers 2 --parallelism pipeline)
    report stages_take_less_memory $((staged * 100 > alone * 95)) "$staged kB, one worker $alone"
else
    echo "skip cli_workers.stages_take_less_memory: there is no python3"
fi
# How much address space a process starts with differs, so the limit is looked for.
for limit in 400000 375000 350000 325000 310000 295000 280000 265000 250000 235000; do
    (ulimit -v $limit && exec "$prony" train $outgrown --workers 2 --parallelism pipeline) >"$folder/out" 2>&1
    ended=$?
    ! grep -q '^prony: warning: no test' "$folder/out" || break
done
report it_trains_without_a_test $ended "$(cat "$folder/out")"
holds it_says_so_before "$(head -n 1 "$folder/out")" 'prony: warning: no test will follow, since it takes the whole network'
holds it_says_so_behind "$(cat "$folder/out")" 'no test: no unit has room for the whole network'

# The bench times them in turns with one worker, whose reference says that they are right.
"$prony" bench mlp:8-24-16-4 --batch 12 --backend simd --workers 1,2,3 --scaling weak,strong --parallelism data,model,pipeline \
    --seconds 0.02 --out "$folder/records" >"$folder/table"
rows=$(grep -c '"kind":"result".*"status":"ok".*"verdict":"right"' "$folder/records")
report bench_is_right $((rows != 13)) "$rows of 13 rows are right: $(cat "$folder/table")"
for meter in communicate_exposed communicate_hidden sent_bytes worker_speedup worker_efficiency; do
    rows=$(grep -c "\"$meter\":[0-9]" "$folder/records")
    report "records_have_$meter" $((rows != 12)) "found it in $rows records, expected 12"
done
holds strong_scaling_shares_a_batch "$(grep '"workers":3.*"scaling":"strong"' "$folder/records" | head -n 1)" '"batch":4,'
expect strong_scaling_divides 2 'prony: --scaling strong: found batch 7 and 2 workers' \
    "$prony" bench small --batch 7 --workers 1,2 --scaling strong
expect workers_train 0 'needs --phase training' "$prony" bench small --phase inference --workers 2 --seconds 0.02

rm -f "$folder/records"
"$prony" bench mlp:8-24-16-4 --batch 12 --backend simd --workers 1,4 --scaling strong --parallelism data-model,data-pipeline \
    --seconds 0.02 --out "$folder/records" >"$folder/table"
rows=$(grep -c '"parallelism":"data-.*"status":"ok".*"verdict":"right"' "$folder/records")
report copies_are_right $((rows != 2)) "$rows of 2 rows are right: $(cat "$folder/table")"

# PyTorch's own way takes turns with them.
if /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null; then
    rm -f "$folder/records"
    "$prony" bench mlp:8-24-16-4 --batch 12 --workers 1,2 --scaling strong --framework prony,pytorch --seconds 0.02 \
        --out "$folder/records" >"$folder/table"
    rows=$(grep -c '"kind":"result".*"status":"ok".*"verdict":"right"' "$folder/records")
    report ddp_is_right $((rows != 4)) "$rows of 4 rows are right: $(cat "$folder/table")"
    rows=$(grep -c '"framework":"pytorch".*"worker_speedup":[0-9]' "$folder/records")
    report ddp_has_a_speed_up $((rows != 1)) "found it in $rows records, expected 1"
else
    echo "skip cli_workers.ddp: /usr/bin/python3 has no torch (python3-torch)"
fi
expect others_refuse 0 'skipped' "$prony" bench small --framework python-list --workers 2 --seconds 0.02

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

# The same of a pipeline, which any number of workers goes on with.
pipe() {
    "$prony" train mlp:64-512-512-10 digits --backend simd --threads 1 --epochs 60 --parallelism pipeline \
        --micro-batches 4 "$@"
}
pipe --workers 2 --out "$folder/whole" >/dev/null
hit KILL 0 2 "$folder/stage" "$prony" train mlp:64-512-512-10 digits --backend simd --threads 1 --epochs 60 \
    --workers 2 --parallelism pipeline --micro-batches 4 --out "$folder/stage"
holds a_killed_stage_is_named "$said" "prony: rank 0 (host $(uname -n), process "
holds how_a_pipeline_goes_on "$said" "--workers 2 --parallelism pipeline --micro-batches 4 --resume $folder/stage"
report no_stage_waits "$((seconds > 5 || code != 1))" "$seconds s, status $code: $said"
pipe --workers 3 --resume "$folder/stage" --out "$folder/stage" >/dev/null
cmp "$folder/whole" "$folder/stage"
report a_resumed_pipeline_is_the_same $? "the resumed training differs from the one that was never killed"

# Two copies of a pipeline: killed, they go on to the bits of those that were not.
copies() {
    "$prony" train mlp:64-256-256-10 digits --backend simd --threads 1 --epochs 40 --workers 4 \
        --parallelism data-pipeline --micro-batches 4 "$@"
}
copies --out "$folder/whole" >/dev/null
hit KILL 3 4 "$folder/copy" "$prony" train mlp:64-256-256-10 digits --backend simd --threads 1 --epochs 40 \
    --workers 4 --parallelism data-pipeline --micro-batches 4 --out "$folder/copy"
holds a_killed_copy_is_named "$said" "prony: rank 3 (host $(uname -n), process "
report no_copy_waits "$((seconds > 5 || code != 1))" "$seconds s, status $code: $said"
copies --resume "$folder/copy" --out "$folder/copy" >/dev/null
cmp "$folder/whole" "$folder/copy"
report resumed_copies_are_the_same $? "the resumed training differs from the one that was never killed"

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
