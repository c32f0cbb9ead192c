# All-reduces over TCP between "machines": network namespaces with a host name each, joined by a bridge
# whose links let 1 Gbit/s through. Open MPI and MPICH, 2 and 4 ranks, 50 MB: the median of the ring that
# training takes is at most 1.06 × the time of the wire, and its mean within 10 % of the median: with larger
# messages both send one way at a time in many rounds, which takes twice as long. The same sum simulated is
# within 10 % of the best ring. In a training most of the sums go on beside computing. Two minutes on a
# quiet machine; needs root.
#
# A gigabit link moves 117.3 MB/s of a TCP stream (1448 of 1538 bytes of a frame are data).

suite=wire
. tests/shell/command.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
name=pr$$
net=10.77.$(($$ % 250)).

take_down() {
    for i in 0 1 2 3; do
        ip netns del $name$i 2>/dev/null
        rm -rf "/etc/netns/$name$i"
    done
    ip link del ${name}b 2>/dev/null
    rm -rf "$folder"
}
# Every namespace is a host of its own: its address, its name, what the others are called.
set_up() {
    ip link add ${name}b type bridge && ip link set ${name}b up || return 1
    for i in 0 1 2 3; do
        ip netns add $name$i && mkdir -p "/etc/netns/$name$i" || return 1
        { echo 127.0.0.1 localhost; for k in 0 1 2 3; do echo "$net$((k + 1)) $name$k"; done; } >"/etc/netns/$name$i/hosts"
        ip link add ${name}v$i type veth peer name eth0 netns $name$i &&
            ip link set ${name}v$i master ${name}b up &&
            ip -n $name$i addr add "$net$((i + 1))/24" dev eth0 &&
            ip -n $name$i link set eth0 up && ip -n $name$i link set lo up &&
            ip netns exec $name$i tc qdisc add dev eth0 root tbf rate 1gbit burst 256kb limit 20mb || return 1
    done
}
if [ "$(id -u)" -ne 0 ] || ! command -v tc >/dev/null; then
    echo "skip wire: it takes root and tc to make network namespaces"
    exit 0
fi
trap take_down EXIT
trap 'exit 1' INT TERM
if ! set_up 2>"$folder/error"; then
    echo "skip wire: no network namespaces here: $(head -1 "$folder/error")"
    exit 0
fi
# What the launchers use for ssh.
cat >"$folder/agent" <<'SH'
#!/bin/sh
[ "$1" != -x ] || shift
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; exec setsid sh -c '$*'"
SH
chmod +x "$folder/agent"
on_first() { ip netns exec ${name}0 unshare --uts sh -c "hostname ${name}0; exec \"\$@\"" sh "$@"; }
hosts() { # RANKS SEPARATOR_AND_SLOTS
    i=0 list=
    while [ $i -lt "$1" ]; do
        list="$list${list:+,}$name$i$2" i=$((i + 1))
    done
    echo "$list"
}
openmpi() {
    ranks=$1
    shift
    on_first timeout 120 mpirun.openmpi --bind-to none --mca plm_rsh_agent "$folder/agent" \
        --mca oob_tcp_if_include ${net}0/24 --mca btl_tcp_if_include ${net}0/24 --mca btl self,tcp \
        --mca pml ob1 -H "$(hosts $ranks :1)" -np $ranks "$@"
}
mpich() {
    ranks=$1
    shift
    on_first timeout 120 env UCX_TLS=tcp,self mpiexec.mpich -launcher ssh -launcher-exec "$folder/agent" \
        -hosts "$(hosts $ranks '')" -ppn 1 -n $ranks "$@"
}
# ring LIBRARY RANKS: leaves the rows of all ways in $folder/rows.
ring() {
    $1 $2 "$prony" comm --bytes 50M --seconds 8 --json >"$folder/rows" 2>"$folder/error"
    found=$(python3 - "$folder/rows" $2 <<'PYTHON'
import json, sys
rows = {row["way"]: row for row in map(json.loads, open(sys.argv[1]))}
ranks = int(sys.argv[2])
wire = 2 * (ranks - 1) / ranks * 50e6 / 117.3e6
ring, own = rows["ring"], rows["library's own"]
print("ring: median %.0f ms, mean %.0f, best %.0f, %.3f x the wire; MPI_Allreduce %.0f, mean %.0f, best %.0f" % (
    ring["median_ns"] / 1e6, ring["mean_ns"] / 1e6, ring["min_ns"] / 1e6, ring["median_ns"] / 1e9 / wire,
    own["median_ns"] / 1e6, own["mean_ns"] / 1e6, own["min_ns"] / 1e6))
sys.exit(not (ring["right"] and ring["median_ns"] / 1e9 <= 1.06 * wire and ring["mean_ns"] <= 1.1 * ring["median_ns"]))
PYTHON
    )
    report $1_ring_of_$2 $? "$found $(tail -3 "$folder/error")"
    echo "     $found"
}
if ! command -v mpiexec.mpich >/dev/null || [ ! -e "$PRONY_BUILD/comm_mpich.so" ]; then
    echo "skip wire.mpich: MPICH is not installed (tools/setup test)"
else
    for ranks in 2 4; do ring mpich $ranks; done
fi
if ! command -v mpirun.openmpi >/dev/null || [ ! -e "$PRONY_BUILD/comm_openmpi.so" ]; then
    echo "skip wire.openmpi: Open MPI is not installed (tools/setup test)"
    exit $status
fi
for ranks in 2 4; do
    ring openmpi $ranks
    if [ ! -e "$PRONY_BUILD/comm_simgrid.so" ]; then
        echo "skip wire.simulated_ring_of_$ranks: built without SimGrid (tools/setup test)"
        continue
    fi
    # A training whose gradient is one sum of 50 MB, on the same link and with the same ranks.
    "$prony" simulate mlp:3534-3534-1 --workers $ranks --batch 1 --platform ethernet-1g --format json \
        >"$folder/simulated" 2>"$folder/error"
    found=$(python3 - "$folder/rows" "$folder/simulated" <<'PYTHON'
import json, sys
ring = [row for row in map(json.loads, open(sys.argv[1])) if row["way"] == "ring"][0]["min_ns"]
simulated = [json.loads(line) for line in open(sys.argv[2])][-1]["result"]["meters"]["communicate_exposed"]
print("simulated %.0f ms, %.3f x the best real ring" % (simulated / 1e6, simulated / ring))
sys.exit(not 0.9 <= simulated / ring <= 1.1)
PYTHON
    )
    report simulated_ring_of_$ranks $? "$found $(tail -3 "$folder/error")"
    echo "     $found"
done
# A training by 2 ranks, with 5 sums of 4.8 MB in a step. What a step computes is timed by two workers at
# once that have nothing to do with each other.
ask() { # BATCH WORKERS
    echo '{"do":"prepare","model":"mlp:1000-1100-1100-1100-1100-1100-10","phase":"training","batch":'$1',"threads":1,'\
        '"backend":"simd","axes":{"workers":"'$2'","parallelism":"data"}}'
    for i in 1 2 3 4 5; do
        echo '{"do":"run","iterations":3}'
    done
}
ask 512 1 | "$prony" peer >"$folder/alone" 2>"$folder/error" &
ask 512 1 | "$prony" peer >/dev/null 2>&1
wait $!
ask 1024 2 | openmpi 2 "$prony" peer >"$folder/together" 2>>"$folder/error"
found=$(python3 - "$folder/alone" "$folder/together" <<'PYTHON'
import json, statistics, sys
alone, together = ([json.loads(line) for line in open(name)][1:] for name in sys.argv[1:])
compute = statistics.median(run["elapsed_ns"] / 3e6 for run in alone)
step = statistics.median(run["elapsed_ns"] / 3e6 for run in together)
hidden, exposed = (statistics.median(run[part + "_ns"] for run in together) / 1e6 for part in ("hidden", "exposed"))
wire = 4 * (1001 * 1100 + 4 * 1101 * 1100 + 1101 * 10) / 117.3e3
print("step %.0f ms, of computing alone %.0f; sums %.0f, on the wire %.0f, of them hidden %.0f" % (
    step, compute, hidden + exposed, wire, hidden))
sys.exit(not (hidden > exposed and step < compute + 0.75 * (hidden + exposed)))
PYTHON
)
report sums_hide_behind_computing $? "$found $(tail -3 "$folder/error")"
echo "     $found"
exit $status
