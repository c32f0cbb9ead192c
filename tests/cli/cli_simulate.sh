# prony simulate: curves add up, records say that they were simulated and stay apart from measured ones;
# what cannot be is refused in one line. Times of computing are those of the results that ship.

suite=cli_simulate
. tests/shell/command.sh
export XDG_CACHE_HOME="$folder/cache" XDG_DATA_HOME="$folder/data"

expect refuses_no_workers 2 'workers: found "0", expected a whole number from 1' \
    "$prony" simulate small --workers 0
expect refuses_too_many 2 '--workers: found 30000, expected 1 to 20000' \
    "$prony" simulate small --workers 30000
expect refuses_a_way 2 'parallelism: found "task"' "$prony" simulate small --parallelism task

if [ ! -e "$PRONY_BUILD/comm_simgrid.so" ]; then
    says machine_tells_what_is_missing 'found no comm_simgrid.so' "$prony" machine
    expect says_what_to_install 1 'libsimgrid-dev' "$prony" simulate small
    echo "skip $suite.curves: built without SimGrid (Debian: libsimgrid-dev)"
    exit $status
fi
says machine_names_it 'available: SimGrid 3' "$prony" machine

expect refuses_an_order 2 "--pipeline: found 'zigzag', expected 1f1b or gpipe" \
    "$prony" simulate small --workers 2 --parallelism pipeline --pipeline zigzag
expect refuses_a_network 2 'no_such' "$prony" simulate no_such
expect refuses_a_platform 2 "--platform: found 'ethernet-2g', expected here, ethernet-100g" \
    "$prony" simulate small --platform ethernet-2g
expect refuses_no_file 1 'missing.platform' "$prony" simulate small --platform missing.platform
printf 'outside 1 GB/s 5 us\nunits many\n' >"$folder/broken.platform"
expect refuses_a_broken_file 2 "broken.platform:2: units: found 'many', expected 1 to 64" \
    "$prony" simulate small --platform "$folder/broken.platform"
printf '<?xml version="1.0"?>\n<platform version="4.1"><nothing/></platform>\n' >"$folder/broken.xml"
expect refuses_broken_xml 2 'broken.xml: SimGrid cannot use this platform' \
    "$prony" simulate small --platform "$folder/broken.xml"
expect refuses_a_unit_without_times 2 'found no result of training small on a fpga in the store' \
    "$prony" simulate small --unit fpga
expect refuses_more_workers_than_samples 2 '8 workers and batches of 4 samples' \
    "$prony" simulate small --scaling strong --batch 4 --workers 8

cat >"$folder/two.xml" <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="5us"/></platform>
END
says reads_a_file_of_simgrid 'two.xml' "$prony" simulate large --platform "$folder/two.xml" --workers 2
expect refuses_more_workers_than_hosts 2 'has 2 hosts, found 4 workers' \
    "$prony" simulate large --platform "$folder/two.xml" --workers 4

rows=$("$prony" simulate large --workers 1-16*2 --scaling weak,strong --parallelism data,model,pipeline \
    --batch 64 --platform ethernet-25g --format json --store "$folder/s.db" 2>&1)
report ends_well $? "$rows"
echo "$rows" | python3 -c '
import json, sys
rates = {}
for line in sys.stdin:
    record = json.loads(line)
    point, result = record["point"], record["result"]
    assert point["origin"] == "simulated" and point["server"], point
    assert result["check"]["verdict"] == "none"
    workers = point.get("workers", 1)
    assert workers == 1 or point["interconnect"] == "ethernet-25g"
    rates[point.get("parallelism"), point.get("scaling"), workers] = result["throughput"]
    meters = result["meters"]
    if workers > 1:
        assert meters["sent_bytes"] > 0
        assert meters["worker_efficiency"] <= 100.1
for way in "data", "model":
    for workers in 2, 4, 8:
        if ("data", "weak", 2 * workers) in rates:
            assert rates["data", "weak", 2 * workers] > rates["data", "weak", workers]
' 2>"$folder/python"
report figures_add_up $? "$(cat "$folder/python")"
again=$("$prony" simulate large --workers 4 --platform ethernet-25g --format json | grep -o '"median":[0-9.e+]*')
[ "$again" = "$("$prony" simulate large --workers 4 --platform ethernet-25g --format json | grep -o '"median":[0-9.e+]*')" ]
report is_the_same_each_time $? "$again"

# Simulated results come only to those who ask for them.
"$prony" query --store "$folder/s.db" --x workers --y throughput --where 'model=large framework=prony' >"$folder/measured" 2>&1
! grep -q '^ *16 ' "$folder/measured"
report measured_charts_have_none $? "$(cat "$folder/measured")"
says those_who_ask_have_them '16' \
    "$prony" query --store "$folder/s.db" --x workers --y throughput --where 'model=large origin=simulated'

says shows_what_limits 'link' "$prony" simulate large --workers 2,4
says says_where_it_stops_paying 'Data parallelism does not pay: 2 workers bring 0.' \
    "$prony" simulate large --workers 2,4
says says_which_way_is_fastest 'Fastest: data from 2 workers on.' \
    "$prony" simulate large --workers 2,4 --parallelism data,pipeline --platform ethernet-100g
says a_point_that_cannot_be_has_its_reason 'found 64 stages, expected at most' \
    "$prony" simulate large --parallelism pipeline --workers 2,64
exit $status
