# prony comm: what it measures is right, adds up, and is told to people and to programs; what cannot
# be is refused in one line.

suite=cli_comm
. tests/shell/command.sh

rows=$("$prony" comm --workers 2,3 --bytes 4,100k --seconds 0.02 --json 2>&1)
held=$?
report ends_well $held "$rows"
[ "$(echo "$rows" | grep -c '"transport":"threads"')" -ge 8 ] &&
    [ "$(echo "$rows" | grep -c '"transport":"shm"')" -ge 8 ] &&
    ! echo "$rows" | grep -q '"right":false'
report every_way_of_both_transports_is_right $? "$rows"
[ "$(echo "$rows" | grep -c '"chosen":true')" -eq 8 ]
report one_way_is_chosen_for_each_size $? "$rows"
echo "$rows" | python3 -c '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    assert 0 < row["min_ns"] <= min(row["median_ns"], row["mean_ns"]) and row["bound_ns"] > 0 and row["rounds"] >= 3, row
' 2>"$folder/python"
report figures_add_up $? "$(cat "$folder/python")"
says shows_a_table 'transport' "$prony" comm --bytes 1M --seconds 0.02 --transport threads
expect one_worker_has_nothing_to_send 0 'correct' "$prony" comm --workers 1 --bytes 4k --seconds 0.02

expect refuses_a_size 2 "--bytes: found '50X', expected 4 to 4G" "$prony" comm --bytes 50X
expect refuses_no_size 2 "--bytes: found ','" "$prony" comm --bytes ,
expect refuses_no_workers 2 "--workers: found '0', expected 1 to 64" "$prony" comm --workers 0
expect refuses_a_transport 2 "--transport: found 'tcp', expected threads or shm" "$prony" comm --transport tcp
expect names_the_plugin_of_a_launcher 1 'started as rank 0 of 2 (PMI_SIZE): found no comm_mpich.so' \
    env PMI_RANK=0 PMI_SIZE=2 sh -c 'cp "$0" "$1/prony" && "$1/prony" comm' "$prony" "$folder"
says machine_names_the_transports 'shm' "$prony" machine
exit $status
