#!/bin/sh
# prony train --parallelism server, async-server: workers and servers learn what one worker does, what
# happens to one of them ends all, and what cannot be is refused.
suite=cli_servers
. tests/shell/command.sh
. tests/shell/workers.sh

train() { "$prony" train mlp:64-32-10 digits --backend simd --threads 1 "$@"; }

one=$(train --epochs 3 | grep -o 'epoch 3 of 3, loss [0-9.]*, accuracy [0-9.]*')
says as_one_by_a_server "$one" train --epochs 3 --workers 3 --parallelism server
says as_one_by_two_servers "$one" train --epochs 3 --workers 4 --parallelism server --servers 2
norm() { "$prony" train lenet synthetic:90x784:10 --epochs 2 --batch 32 --workers "$@" | grep 'epoch 2' | cut -d, -f 1,2; }
[ "$(norm 2)" = "$(norm 3 --parallelism server)" ]
report batch_norm_as_in_data $? "$(norm 2) by data, $(norm 3 --parallelism server) by a server"

# It goes on bit for bit where it was saved, also with other servers.
served() { train --batch 24 --optimiser adam --workers 4 --parallelism server --out "$@" >/dev/null; }
served "$folder/whole" --epochs 3
served "$folder/halved" --epochs 2
"$prony" train mlp:64-32-10 digits --backend simd --threads 1 --workers 5 --parallelism server --servers 2 --epochs 3 \
    --resume "$folder/halved" --out "$folder/halved" >/dev/null
cmp "$folder/whole" "$folder/halved"
report a_served_training_goes_on $? "the resumed training differs from the one that was not stopped"

# Asynchronous: it learns, says how stale gradients were, and is saved and gone on with.
expect it_learns 0 'test accuracy 9' train --epochs 6 --workers 4 --parallelism async-server --out "$folder/async"
expect it_says_how_stale 0 ' updates stale on average, at most ' train --epochs 1 \
    --workers 4 --parallelism async-server --servers 2
expect one_worker_is_not_stale 0 'gradients were 0 updates stale on average, at most 0' train --epochs 1 \
    --workers 2 --parallelism async-server
expect one_goes_on 0 'epoch 7 of 7' "$prony" train mlp:64-32-10 digits --backend simd --threads 1 --epochs 7 \
    --resume "$folder/async"

# Killed and hung, whoever it is.
rank=2 # which serves
for way in server async-server; do
    rm -f "$folder/hit"
    hit KILL $rank 3 "$folder/hit" "$prony" train mlp:64-256-10 digits --backend simd --threads 1 --epochs 5000 \
        --workers 3 --parallelism $way --out "$folder/hit"
    holds "killed_$way" "$said" "prony: rank $rank (host $(uname -n), process "
    holds "how_${way}_goes_on" "$said" "--workers 3 --parallelism $way --resume $folder/hit"
    report "nothing_waits_$way" "$((seconds > 5 || code != 1))" "$seconds s, status $code: $said"
    rank=0
    rm -f "$folder/hit"
    hit STOP 2 3 "$folder/hit" "$prony" train mlp:64-32-10 digits --backend simd --threads 1 --epochs 5000 \
        --workers 3 --parallelism $way --worker-patience 1 --out "$folder/hit"
    holds "hung_$way" "$said" "prony: rank 2 (host $(uname -n), process "
    report "hung_is_noticed_$way" "$((seconds > 8 || code != 1))" "$seconds s, status $code: $said"
done

# What cannot be.
refuse() {
    name=$1 expected=$2
    shift 2
    expect "$name" 2 "prony: $expected" "$prony" train "$@"
}
refuse servers_alone '--parallelism server: found 3 workers, expected at least 4, since 3 of them serve' \
    small iris --workers 3 --parallelism server --servers 3
refuse one_alone '--parallelism async-server: found 1 worker, expected at least 2' \
    small iris --parallelism async-server
refuse servers_without '--servers: found --parallelism data, expected server or async-server' \
    small iris --workers 3 --servers 1
refuse servers_of_copies '--servers: found --parallelism data-pipeline, expected server or async-server' \
    small iris --workers 4 --parallelism data-pipeline --servers 1
refuse copies_of_servers '--copies: found --parallelism server, expected data-model or data-pipeline' \
    small iris --workers 4 --parallelism server --copies 2
expect none_is_simulated 2 'prony: --parallelism: found async-server, expected data, model or pipeline' \
    "$prony" simulate small --workers 4 --parallelism async-server
refuse a_sample_each 'iris: found 11 workers and batches of 8 samples' \
    small iris --workers 12 --parallelism server
refuse no_sync_norm '--sync-norm: found --parallelism server, expected data' \
    small iris --workers 3 --parallelism server --sync-norm
refuse no_gan 'gan: found a recipe of several programs, expected one' gan ring:200 --workers 3 --parallelism server
expect more_than_parameters 2 'prony: small: found 9 servers, expected at most 8' \
    "$prony" explain small --workers 10 --parallelism server --servers 9
expect clipping_by_several 2 'prony: small: found clip, which needs the parameters of several servers' \
    "$prony" explain small --workers 4 --parallelism server --servers 2 --optimiser sgd:clip=1

# The bench: synchronous ones are right, of asynchronous ones it says how stale they are.
"$prony" bench mlp:8-24-16-4 --batch 12 --backend simd --workers 1,3 --parallelism server,async-server --servers 1,2 \
    --seconds 0.02 --out "$folder/records" >"$folder/table"
rows=$(grep -c '"parallelism":"server".*"verdict":"right"' "$folder/records")
report servers_are_right $((rows != 2)) "$rows of 2 rows are right: $(cat "$folder/table")"
rows=$(grep -c '"parallelism":"async-server".*"staleness":[0-9.]*,"staleness_most":[0-9]' "$folder/records")
report records_say_how_stale $((rows != 2)) "$rows of 2 records: $(cat "$folder/table")"
exit $status
