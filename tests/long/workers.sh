#!/bin/sh
# Workers that train together: every lesson by 2, 3 and 4 of them in every way, also under Open MPI and
# MPICH, and 100 workers that are killed at random moments, some of which share out samples, some the
# layers; then ten ranks of each MPI. Nothing waits longer than ten seconds, and what was saved ends with
# the same bits as a training that was never killed.

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

# The same under MPI's launchers, which end all ranks themselves.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
openmpi() { timeout 300 mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 "$@"; }
mpich() { timeout 300 mpiexec.mpich "$@"; }
# ranks_of FILE: the processes of prony that have it on their command line, mpirun's own left out.
ranks_of() {
    for process in $(pgrep -f -- "--out $1"); do
        [ "$(cat "/proc/$process/comm" 2>/dev/null)" = prony ] && echo "$process"
    done
}
for library in openmpi mpich; do
    launcher=mpirun.openmpi
    [ $library = openmpi ] || launcher=mpiexec.mpich
    if ! command -v $launcher >/dev/null || [ ! -e "$PRONY_BUILD/comm_$library.so" ]; then
        echo "skip workers.$library: it is not installed (tools/setup test)"
        continue
    fi
    for ranks in 2 3 4; do
        PRONY_EVERY_WORKER=1 expect ${library}_lessons_of_$ranks 0 '1 passed, 0 failed' \
            $library -n $ranks "$PRONY_BUILD/tests/test_workers" ranks_of_mpirun_learn_what_one_learns
    done
    long() {
        $library -n 2 "$prony" train mlp:64-512-512-10 digits --backend simd --threads 1 --epochs 60 "$@" --out "$out"
    }
    out=$folder/whole_$library killed=0
    long >/dev/null
    for try in $(seq 10); do
        out=$folder/rank_$library$try
        long >/dev/null 2>&1 &
        started=$!
        tries=0
        until [ -e "$out" ] || [ $((tries += 1)) -gt 300 ]; do sleep 0.1; done
        sleep "$(awk -v seed="$try" 'BEGIN { srand(seed); print rand() }')"
        kill -KILL "$(ranks_of "$out" | sed -n "$((try % 2 + 1))p")" 2>/dev/null
        from=$(date +%s)
        wait $started
        code=$? seconds=$(($(date +%s) - from))
        [ $code -eq 0 ] || killed=$((killed + 1))
        report "${library}_nothing_waits_$try" $((seconds > 10)) "it took $seconds s to end"
        long --resume "$out" >/dev/null
        cmp "$folder/whole_$library" "$out"
        report "${library}_resumed_is_the_same_$try" $? "the weights differ"
    done
    report ${library}_some_were_killed $((killed < 5)) "only $killed of 10 were killed before they ended"
done
exit $status
