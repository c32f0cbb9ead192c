# Ranks that Open MPI's and MPICH's launchers start: the trials of every transport, ranks that do not
# agree, one that hangs, one that is killed. Each library is skipped where it is not installed.

suite=mpirun
. tests/shell/command.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tests=$PRONY_BUILD/tests/test_launcher

openmpi() { timeout 60 mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 "$@"; }
mpich() { timeout 60 mpiexec.mpich "$@"; }

# refuses NAME RANK_VARIABLE SIZE_VARIABLE PART: two processes that a launcher started, and that MPI does
# not join, as under srun without --mpi, say so in one line.
refuses() {
    for rank in 1 0; do
        env "$2=$rank" "$3=2" "$prony" train small iris --epochs 1 --out "$folder/alone$rank" >"$folder/said$rank" 2>&1 &
        last=$!
    done
    wait $last
    found=$?
    wait
    said=$(cat "$folder/said0" "$folder/said1")
    report "$1_fails" $((found != 2)) "status $found, expected 2: $said"
    holds "$1_says_why" "$said" "$3 says that this is rank 0 of 2, but $4"
    report "$1_says_it_once" $(($(echo "$said" | wc -l) != 1)) "$said"
    [ ! -e "$folder/alone0" ] && [ ! -e "$folder/alone1" ]
    report "$1_writes_nothing" $? "a rank that was alone has saved what it learnt"
}

# Two networks with the same parameters, and another build of this program.
printf 'input 4\ndense 8\nrelu\ndense 3\n' >"$folder/relu.net"
printf 'input 4\ndense 8\ntanh\ndense 3\n' >"$folder/tanh.net"
cp "$prony" "$folder/prony"
cp "$PRONY_BUILD"/comm_*.so "$folder"
echo >>"$folder/prony"

for library in openmpi mpich; do
    launcher=mpirun.openmpi
    [ $library = openmpi ] || launcher=mpiexec.mpich
    if ! command -v $launcher >/dev/null || [ ! -e "$PRONY_BUILD/comm_$library.so" ]; then
        echo "skip mpirun.$library: it is not installed (tools/setup test)"
        continue
    fi
    for ranks in 1 2 3 4; do
        expect ${library}_trials_of_$ranks 0 '1 passed, 0 failed' \
            $library -n $ranks "$tests" trials_over_mpi
    done
    for ranks in 2 3 4; do
        expect ${library}_lessons_of_$ranks 0 '1 passed, 0 failed' \
            $library -n $ranks "$PRONY_BUILD/tests/test_workers" ranks_of_mpirun_learn_what_one_learns
    done
    says ${library}_ranks_that_disagree 'ok   test_launcher.ranks_that_disagree_over_mpi' \
        $library -n 2 "$tests" ranks_that_disagree_over_mpi
    says ${library}_names_the_rank_that_hangs 'ok   test_launcher.a_rank_that_hangs_over_mpi' \
        $library -n 2 "$tests" a_rank_that_hangs_over_mpi
    if [ $library = openmpi ]; then
        refuses slurm_without_pmix SLURM_PROCID SLURM_STEP_NUM_TASKS \
            'Open MPI found rank 0 of 1, expected the same: start prony by srun --mpi=pmix, or'
    else
        refuses pmi_without_server PMI_RANK PMI_SIZE \
            'MPICH found rank 0 of 1, expected the same: start prony by srun --mpi=pmi2, or'
    fi
    for command in 'bench small' 'predict small iris'; do
        # shellcheck disable=SC2086 # words
        $library -n 2 "$prony" $command >"$folder/said" 2>&1
        lines=$(grep -c "prony: .* says that 2 ranks were started, expected one process for prony ${command%% *}: start it" \
            "$folder/said")
        report "${library}_${command%% *}_is_refused_once" $((lines != 1)) "$(cat "$folder/said")"
    done
    $library -n 2 "$prony" profile --once -- true >"$folder/said" 2>&1
    report ${library}_ranks_may_be_watched $? "$(cat "$folder/said")"
    says ${library}_is_measured_beside_the_own_ways "library's own" \
        $library -n 2 "$prony" comm --bytes 4k --seconds 0.1
    # Ranks that would not compute the same thing say in what they differ.
    while IFS='|' read -r name program arguments part; do
        # shellcheck disable=SC2086 # words
        says ${library}_$name "worker 1 on $(uname -n) differs from worker 0 on $(uname -n) in $part" $library \
            -n 1 "$prony" train "$folder/relu.net" iris --epochs 1 : -n 1 "$program" train $arguments --epochs 1 </dev/null
    done <<LINES
compares_networks|$prony|$folder/tanh.net iris|the network: found
compares_shares|$prony|$folder/relu.net iris --test 0.4|the setting test: found 0.4, expected 0.2
compares_precisions|$prony|$folder/relu.net iris --precision bf16|--precision: found bf16, expected as usual
compares_bits|$prony|$folder/relu.net iris --precision int8|--weight-bits: found 8, expected 0
compares_ways|$prony|$folder/relu.net iris --parallelism model|--parallelism: found model, expected data
compares_builds|$folder/prony|$folder/relu.net iris|the build: found
LINES
    # A suite by ranks: each measures its lines, the first one's file has all of them, also of a run before.
    printf 'small --batch %s --backend ref --seconds 0.02\n' 1 2 3 >"$folder/lines"
    rm -f "$folder/out.jsonl"
    for ranks in 2 1; do
        $library -n $ranks "$prony" suite "$folder/lines" --out "$folder/out.jsonl" >"$folder/said" 2>&1
        report ${library}_suite_by_$ranks $? "$(cat "$folder/said")"
        rows=$(grep -c '"kind":"result".*"status":"ok"' "$folder/out.jsonl")
        report ${library}_suite_has_all_after_$ranks $((rows != 3)) "found $rows results, expected 3"
    done
    expect ${library}_suite_needs_a_file 2 'found 2 ranks and no --out, expected --out FILE.jsonl' \
        $library -n 2 "$prony" suite "$folder/lines"
    says ${library}_pipeline_trains 'pipeline of 4 micro-batches, 1f1b' $library -n 2 "$prony" train \
        mlp:64-16-16-10 digits --backend ref --threads 1 --epochs 1 --batch 16 --parallelism pipeline --micro-batches 4 \
        --out "$folder/by_$library"
    "$prony" train mlp:64-16-16-10 digits --backend ref --threads 1 --epochs 1 --batch 16 --parallelism pipeline \
        --micro-batches 4 --out "$folder/alone" >/dev/null
    cmp "$folder/alone" "$folder/by_$library"
    report ${library}_pipeline_has_the_same_bits $? "its weights differ from one worker's"
    # Ranks whose hosts have two names: sums go on beside computing, and give the same bits.
    if unshare --uts true 2>/dev/null; then
        far() { $library -n 2 unshare --uts sh -c 'hostname "far$$"; exec "$@"' sh "$@"; }
        wide="train mlp:64-1200-1200-10 digits --backend simd --threads 1 --epochs 1 --batch 300"
        far "$prony" $wide --out "$folder/far" >/dev/null
        $library -n 2 "$prony" $wide --out "$folder/near" >/dev/null
        cmp "$folder/far" "$folder/near"
        report ${library}_sums_the_same_beside_computing $? "its weights differ from those of one machine"
        work='{"do":"prepare","model":"mlp:64-1200-1200-10","phase":"training","batch":64,"threads":1,"backend":"simd",
            "axes":{"workers":"2","parallelism":"data"}}'
        for place in near far; do
            { echo $work && echo '{"do":"run","iterations":5}'; } | if [ $place = far ]; then
                far "$prony" peer
            else
                $library -n 2 "$prony" peer
            fi >"$folder/$place.said"
        done
        holds ${library}_hides_nothing_on_one_machine "$(cat "$folder/near.said")" '"hidden_ns":0,'
        grep -q '"hidden_ns":[1-9]' "$folder/far.said"
        report ${library}_hides_sums_between_machines $? "$(cat "$folder/far.said")"
    else
        echo "skip mpirun.${library}_between_machines: it takes root to name hosts"
    fi
    begun=$(date +%s)
    $library -n 3 "$tests" a_rank_that_is_killed_over_mpi >/dev/null 2>&1
    held=$?
    [ $held -ne 0 ] && [ $held -ne 124 ] && [ $(($(date +%s) - begun)) -le 10 ]
    report ${library}_ends_when_a_rank_is_killed $? "status $held after $(($(date +%s) - begun)) s"
done
exit $status
