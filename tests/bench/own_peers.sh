# A user's own script as a peer: what it is asked, and what is made of its answers.

suite=own_peers
. tests/shell/command.sh
. tests/shell/relay.sh
command -v python3 >/dev/null || { echo "skip own_peers: no python3"; exit 0; }

# own NAME BODY: a peer that computes by lists, with methods of its own.
own() {
    cat >"$folder/$1" <<PEER
#!/usr/bin/env python3
import os, sys, time
sys.path.insert(0, "peers")
from prony_peer import serve
from pure_python import PurePython

class Own(PurePython):
$2

serve(Own(list))
PEER
    chmod +x "$folder/$1"
}

# right NAME COUNT ARGUMENTS…: so many configurations are measured and right.
right() {
    name=$1 count=$2
    shift 2
    output=$("$prony" bench small "$@" --seconds 0.2 --format json 2>&1)
    [ "$(echo "$output" | grep -c '"verdict":"right"')" -eq "$count" ]
    report "$name" $? "$output"
}

# It has no backend of ours, though its name has a '/' as that of another build has.
own plain.py '    pass'
right is_compared_with 2 --against "$folder/plain.py"
right takes_turns_with_our_backends 3 --framework "prony,$folder/plain.py" --backend ref,simd
right another_build_has_our_backends 2 --framework "$prony" --backend ref,simd

# What is asked of this prony is asked of another, which obeys or refuses; an older one says nothing.
relay told "printf '%s\\n' \"\$line\" >>'$folder/told.txt'" prepare
output=$("$prony" bench small --phase inference --isa scalar --fusion off --pages 4k \
    --framework "prony,$folder/told" --seconds 0.05 --format json 2>&1)
grep -q '"axes":{"isa":"scalar","fusion":"off","pages":"4k"}' "$folder/told.txt" &&
    [ "$(echo "$output" | grep -c '"isa":"scalar","fusion":"off".*"verdict":"right"')" -eq 2 ]
report another_build_obeys_our_axes $? "$(cat "$folder/told.txt"; echo "$output")"
expect another_build_refuses_a_precision 0 'skipped: ' \
    "$prony" bench small --phase inference --precision fp16 --framework "$prony" --seconds 0.05
relay older "line=\$(printf '%s' \"\$line\" | sed 's/\"axes\":{[^}]*},//')" prepare
expect an_older_build_does_not_obey_in_silence 0 'it does not say that it obeys fusion off' \
    "$prony" bench small --phase inference --fusion off --framework "$folder/older" --seconds 0.05

# One that says why it cannot run as its users run it is marked, and no verdict is drawn from it.
own lame.py '    def prepare(self, work):
        PurePython.prepare(self, work)
        return {"handicap": "reference BLAS (netlib)", "software": {"own": "1"}}'
output=$("$prony" bench small --phase inference --against "$folder/lame.py" --seconds 0.1 \
    --out "$folder/lame.jsonl" 2>&1)
marked a_handicap_is_marked "$output" "$folder/lame.py" 'handicapped: reference BLAS (netlib)'
holds the_mark_is_explained "$(echo "$output" | tr -s '\n ' ' ')" "its users would run it faster"
holds no_verdict_is_drawn "$output" "no verdict: $folder/lame.py is handicapped"
case $output in *"its time ("*) false ;; esac
report no_verdict_is_printed $? "$output"
grep -q '"handicap":"reference BLAS (netlib)".*"peer":{"own":"1"}' "$folder/lame.jsonl"
report a_handicap_is_recorded $? "$(cat "$folder/lame.jsonl")"
says compare_leaves_it_out "1 handicapped in the old file and 1 in the new one are left out" \
    "$prony" compare "$folder/lame.jsonl" "$folder/lame.jsonl"

# What is timed is what is checked.
own printer.py '    def infer(self, batch):
        print("loss", 1)'
expect checks_what_is_timed 1 'failed: ' \
    "$prony" bench small --phase inference --framework "$folder/printer.py" --seconds 0.05

# It warms up where it takes turns, and not where somebody waits for each answer or it is counted.
relay asked "printf '%s\\n' \"\$line\" >>'$folder/requests'"
warm() { grep -c "\"do\":\"run\",\"warm\":$1," "$folder/requests"; }
"$prony" bench small --phase inference --framework "$folder/asked" --seconds 0.1 --format json \
    >"$folder/asked.jsonl" 2>&1
[ "$(warm true)" -gt 0 ] && tail -n 1 "$folder/requests" | grep -q '"warm":false'
report warms_up_in_turns $? "$(cat "$folder/requests" "$folder/asked.jsonl")"
: >"$folder/requests"
"$prony" bench small --phase inference --scenario single-stream --framework "$folder/asked" \
    --seconds 0.1 >"$folder/asked.txt" 2>&1
[ "$(warm true)" -eq 0 ] && [ "$(warm false)" -gt 0 ]
report does_not_warm_up_for_calls $? "$(head "$folder/requests" "$folder/asked.txt")"
: >"$folder/requests"
"$prony" bench small --phase inference --caches cold --framework "$folder/asked" --seconds 0.1 \
    >"$folder/asked.txt" 2>&1
[ "$(warm true)" -eq 0 ] && [ "$(warm false)" -gt 0 ]
report does_not_warm_up_cold_caches $? "$(head "$folder/requests" "$folder/asked.txt")"
python3 - <<'PYTHON'
import sys, types
sys.path.insert(0, "peers")
from prony_peer import Server

class Peer:
    packages, ran = [], 0
    def step(self, batch):
        self.ran += 1

server = Server(Peer())
server.work = types.SimpleNamespace(batches=8, training=False)
for warm, ran in ((True, 3), (True, 7), (False, 10), (False, 13)):  # the first is not known to be short
    server.run({"iterations": 3, "warm": warm})
    assert server.peer.ran == ran, (warm, server.peer.ran)
PYTHON
report runs_what_it_is_asked_for $? "see above"

# What its first iteration takes is not what an iteration takes, also where one outruns the time.
own slow.py '    ran = 0
    def infer(self, batch):
        super().infer(batch)
        self.ran += 1
        time.sleep(0.15 if self.ran > 1 else 0.5)'
output=$("$prony" bench small --phase inference --framework "$folder/slow.py" --seconds 0.1 2>&1)
case $output in *' '[12]??' ms'*'measured once, warm'*'a CPU for'*) true ;; *) false ;; esac
report a_first_iteration_is_no_sample $? "$output"
# … and what it used is not what the sample did, also where the check would outrun the patience.
own busy.py '    ran = 0
    def infer(self, batch):
        super().infer(batch)
        self.ran += 1
        end = time.monotonic() + 0.2
        while self.ran == 1 and time.monotonic() < end:
            pass
        time.sleep(max(0, end - time.monotonic()))'
output=$("$prony" bench small --phase inference --framework "$folder/busy.py" --seconds 0.1 --patience 0.4 2>&1)
case $output in *'measured once, warm'*'it had a CPU for '[0-9]' %'*) true ;; *) false ;; esac
report a_sample_is_metered_itself $? "$output"
expect says_how_long_six_samples_took 0 'its 6 samples took ' \
    "$prony" bench small --phase inference --framework "$folder/slow.py" --seconds 0.2

# A hundred calls an iteration are a hundred, whatever else it does.
own counted.py '    def infer(self, batch):
        super().infer(batch)
        for _ in range(100):
            os.getppid()
        time.sleep(0.01)'
"$prony" bench small --phase inference --framework "$folder/counted.py" --seconds 0.2 --format json \
    >"$folder/counted.jsonl" 2>&1
python3 - "$folder/counted.jsonl" <<'PYTHON'
import json, sys
results = [json.loads(line) for line in open(sys.argv[1]) if '"kind":"result"' in line]
meters, time = results[0]["result"]["meters"], results[0]["result"]["time_ns"]["median"]
if isinstance(meters["system_calls"], str):
    print("skip:", meters["system_calls"])
else:
    calls = meters["system_calls.getppid"] * time * 1e-9
    assert abs(calls - 100) < 0.5, calls
PYTHON
report counts_its_system_calls $? "$(cut -c1-2000 "$folder/counted.jsonl")"

# A suite measures it again when it was changed.
echo "small --framework $folder/plain.py --seconds 0.05" >"$folder/own.suite"
"$prony" suite "$folder/own.suite" --out "$folder/own.jsonl" >/dev/null 2>&1
expect is_measured_once 0 'nothing is left to be measured' \
    "$prony" suite "$folder/own.suite" --out "$folder/own.jsonl"
touch -d 2100-01-01 "$folder/plain.py"
"$prony" suite "$folder/own.suite" --out "$folder/own.jsonl" >/dev/null 2>&1
[ "$(grep -c '"kind":"result"' "$folder/own.jsonl")" = 2 ]
report is_measured_again_when_it_was_changed $? "$(cut -c1-300 "$folder/own.jsonl")"

# A time that is no whole number is told as what it is; an opponent that fails has no verdict.
cat >"$folder/fraction" <<'PEER'
#!/bin/sh
while read -r line; do
    case $line in *'"do":"run"'*) echo '{"status":"ok","elapsed_ns":1.5}' ;; *) echo '{"status":"ok"}' ;; esac
done
PEER
chmod +x "$folder/fraction"
expect wants_whole_nanoseconds 1 'expected "elapsed_ns": a whole number' \
    "$prony" bench small --framework "$folder/fraction" --seconds 0.05
relay dies "[ \$((runs += 1)) -lt 4 ] || exit 3"
output=$("$prony" bench small --against "$folder/dies" --seconds 1 2>&1)
case $output in *'failed: '*) ! echo "$output" | grep -q 'nan' ;; *) false ;; esac
report gives_no_verdict_on_who_fails $? "$output"

# Who hangs is not waited for when the bench is stopped.
relay hangs "echo >'$folder/hanging'; sleep 1000"
"$prony" bench small --framework "$folder/hangs" >"$folder/stopped.txt" 2>&1 &
bench=$!
tries=0
until [ -e "$folder/hanging" ] || [ $((tries += 1)) -gt 600 ]; do sleep 0.1; done
kill -INT $bench
tries=0
while kill -0 $bench 2>/dev/null && [ $((tries += 1)) -lt 300 ]; do sleep 0.1; done
kill -KILL $bench 2>/dev/null
wait $bench
[ $? -eq 130 ]
report stops_though_it_hangs $? "$(cat "$folder/stopped.txt")"
exit $status
