#!/bin/sh
# What stale gradients cost: loss against updates and against seconds of an asynchronous parameter server,
# beside the synchronous one and one worker, by the number of workers. The table is docs/notebook's
# stale-gradients.md. It checks that all learn, that one worker is never stale, and that more are.
#
#     PRONY_BUILD=build sh tests/long/stale.sh
suite=stale
. tests/shell/command.sh

samples=16 # of one worker, in a step
network=mlp:64-64-32-10
rows=1438
epochs=8

# row WAY WORKERS: a line of the table, of WORKERS that compute and one that serves.
row() {
    way=$1 workers=$2
    "$prony" train $network digits --backend simd --threads 1 --batch $((samples * workers)) --epochs $epochs \
        --workers $((workers + 1)) --parallelism "$way" >"$folder/said"
    awk -v way="$way" -v workers="$workers" -v samples=$samples -v rows=$rows '
        /^epoch/ {
            gsub(/,/, "")
            last = $2
            for (i = 3; i <= NF; i++) {
                if ($(i - 1) == "loss") loss[last] = $i
                if ($i == "samples/s") rate = $(i - 1) == "M" ? $(i - 2) * 1e6 : $(i - 1)
            }
        }
        /stale on average/ { mean = $3; most = $NF }
        /^test accuracy/ { accuracy = $3 }
        END {
            each = way == "server" ? samples * workers : samples
            printf "%-13s %7d %6d %8s %6s", way, workers, each, mean == "" ? "-" : mean, most == "" ? "-" : most
            printf " %8d %8s %8s %8s %8.3f %8s\n", last * rows / each, loss[1], loss[3], loss[last],
                   last * rows / rate, accuracy
        }' "$folder/said"
}

{
    echo "way           workers  batch staleness  most  updates  loss, 1  loss, 3  loss, 8  seconds accuracy"
    for workers in 1 2 4 8; do
        row server $workers
        row async-server $workers
    done
} | tee "$folder/table"

awk '$1 ~ /server/ && $9 + 0 > 1 { bad = 1 } END { exit bad }' "$folder/table"
report all_learn $? "$(cat "$folder/table")"
awk '$1 == "async-server" { if ($2 == 1 && $4 + 0 != 0) bad = 1; if ($2 == 8 && $4 + 0 < 2) bad = 1 } END { exit bad }' \
    "$folder/table"
report as_stale_as_there_are_others $? "$(cat "$folder/table")"
exit $status
