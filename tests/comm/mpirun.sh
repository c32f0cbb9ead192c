# Ranks that Open MPI's and MPICH's launchers start: the trials of every transport, ranks that do not
# agree, one that hangs, one that is killed. Each library is skipped where it is not installed.

suite=mpirun
. tests/shell/command.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tests=$PRONY_BUILD/tests/test_launcher

openmpi() { timeout 60 mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 "$@"; }
mpich() { timeout 60 mpiexec.mpich "$@"; }

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
    says ${library}_ranks_that_disagree 'ok   test_launcher.ranks_that_disagree_over_mpi' \
        $library -n 2 "$tests" ranks_that_disagree_over_mpi
    says ${library}_names_the_rank_that_hangs 'ok   test_launcher.a_rank_that_hangs_over_mpi' \
        $library -n 2 "$tests" a_rank_that_hangs_over_mpi
    says ${library}_is_measured_beside_the_own_ways "library's own" \
        $library -n 2 "$prony" comm --bytes 4k --seconds 0.1
    begun=$(date +%s)
    $library -n 3 "$tests" a_rank_that_is_killed_over_mpi >/dev/null 2>&1
    held=$?
    [ $held -ne 0 ] && [ $held -ne 124 ] && [ $(($(date +%s) - begun)) -le 10 ]
    report ${library}_ends_when_a_rank_is_killed $? "status $held after $(($(date +%s) - begun)) s"
done
exit $status
