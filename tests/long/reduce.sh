# All-reduces of 50 MB by two ranks of this machine: the way that training takes needs at most 1.6 × the time of
# copying 2 (P − 1) ÷ P of the bytes, by processes and over Open MPI (MPICH, which copies once more: 2 ×), and
# no longer than MPI_Allreduce, as it comes and by each algorithm of Open MPI. All take turns with the copy. It
# takes two minutes, and a quiet machine.

suite=reduce
. tests/shell/command.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# beats NAME MOST COMMAND…
beats() {
    name=$1 most=$2
    shift 2
    "$@" --bytes 50M --seconds 8 --json >"$folder/rows" 2>"$folder/error"
    found=$(python3 - "$folder/rows" $most <<'PYTHON'
import json, sys
rows = list(map(json.loads, open(sys.argv[1])))
chosen = [row for row in rows if row["chosen"]][0]
own = [row for row in rows if row["way"] == "library's own"] or [chosen]
times = [row["median_ns"] / row["bound_ns"] for row in (chosen, own[0])]
print("%s: %.2f x copying, %.1f ms; MPI_Allreduce %.2f x" % (chosen["way"], times[0], chosen["median_ns"] / 1e6, times[1]))
sys.exit(not (chosen["right"] and times[0] <= float(sys.argv[2]) and times[0] <= times[1]))
PYTHON
    )
    report $name $? "$found $(tail -3 "$folder/error")"
    echo "     $found"
}
beats shm 1.6 "$prony" comm --transport shm
if ! command -v mpirun.openmpi >/dev/null || [ ! -e "$PRONY_BUILD/comm_openmpi.so" ]; then
    echo "skip reduce.openmpi: it is not installed (tools/setup test)"
else
    beats openmpi 1.6 mpirun.openmpi -n 2 "$prony" comm
    for algorithm in 1 2 3 4 5 6; do # linear, non-overlapping, recursive doubling, ring, segmented ring, Rabenseifner
        beats openmpi_by_$algorithm 1.6 mpirun.openmpi -n 2 --mca coll_tuned_use_dynamic_rules 1 \
            --mca coll_tuned_allreduce_algorithm $algorithm "$prony" comm
    done
fi
if ! command -v mpiexec.mpich >/dev/null || [ ! -e "$PRONY_BUILD/comm_mpich.so" ]; then
    echo "skip reduce.mpich: it is not installed (tools/setup test)"
else
    beats mpich 2 mpiexec.mpich -n 2 "$prony" comm
fi
exit $status
