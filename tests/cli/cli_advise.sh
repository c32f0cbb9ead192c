# prony advise and prony profile of traces, as a person uses them.

suite=cli_advise
. tests/shell/command.sh

recorded=tests/trace/recorded
expect helps 0 'prove with the program after your change' "$prony" advise --help
expect lists_its_rules 0 'R13  the program waits for storage' "$prony" advise --rules
expect lists_its_notices 0 'R15  it is the machine' "$prony" advise --rules
expect knows_a_setting_that_slows 0 'R15 it is the machine, not the program: CUDA_LAUNCH_BLOCKING is set' \
    env CUDA_LAUNCH_BLOCKING=1 "$prony" advise --once -- sleep 0.1
expect finds_pageable_copies 0 'R1 copies of pageable memory: expected 4.6 ×' \
    "$prony" advise $recorded/copy.pageable.trace.gz
expect names_the_line 0 'train_gpu.py:58: 101 MB a step' "$prony" advise $recorded/copy.pageable.trace.gz
expect is_silent_on_a_clean_program 0 'looked at, nothing worth more than 5 %' \
    "$prony" advise $recorded/wide.bf16.trace.gz
expect says_what_bounds_it 0 'bound by compute and the bus together' \
    "$prony" advise $recorded/copy.overlapped.trace.gz
expect proves_a_gain 0 'expected 4.6 × · measured 4.57 × ± 5.5 % · proved' \
    "$prony" advise $recorded/copy.pageable.trace.gz --against $recorded/copy.pinned.trace.gz
expect proves_all_gains 0 'measured 8.94 × ± 5.5 % · proved, with all findings' \
    "$prony" advise $recorded/copy.pageable.trace.gz --against $recorded/copy.overlapped.trace.gz
expect does_not_prove_the_same 0 '· not proved: no faster' \
    "$prony" advise $recorded/back.cpu.trace.gz --against $recorded/back.cpu.trace.gz
for measured in 2.8 3.1 3.3; do
    echo '{"prony":1,"kind":"proof","proof":{"rule":"R1","command":"python3 train_gpu.py","change":"pin",' \
        '"expected":4.6,"low":4.2,"high":4.9,"measured":'$measured',"measured_low":'$measured',' \
        '"measured_high":'$measured',"rounds":8,"verdict":"faster"},"at":"2026-01-01T00:00:00Z"}'
done >"$folder/proofs.jsonl"
"$prony" store add "$folder/proofs.jsonl" --store "$folder/proofs.db" >"$folder/out" 2>&1
report files_proofs $? "$(cat "$folder/out")"
expect corrects_a_range_by_proofs 0 'expected 4.6 ×, between 2.8 and 4.9 (from 3 proofs)' \
    "$prony" advise $recorded/copy.pageable.trace.gz --store "$folder/proofs.db"
expect names_the_longest_op 0 'bound by operators on the host: 80 % of the time is PjRtCApiLoadedExecutable::Execute' \
    "$prony" advise $recorded/jax_cpu.xplane.pb
expect names_what_is_outside_of_ops 0 'outside of operators, 91 % of the time; 8 % is MatMul' \
    "$prony" advise $recorded/ort.json.gz
expect wants_something 2 'found nothing, expected a network, a trace' "$prony" advise
expect says_what_is_no_trace 2 'found no trace, expected one of prony, Kineto' "$prony" advise README.md
expect says_what_is_not_there 1 'nowhere.json' "$prony" advise "$folder/nowhere.json"
printf '{"traceEvents":[{"ph":"X","ts":' >"$folder/cut.json"
expect refuses_half_a_file 2 'cut.json:1: found the end of the file' "$prony" advise "$folder/cut.json"

expect profiles_kineto 0 'the trace lacks: lines of Python' "$prony" profile $recorded/kineto.copy.pageable.json.gz
expect counts_every_nanosecond 0 'all of it' "$prony" profile $recorded/copy.pageable.trace.gz
expect gives_figures_with_their_bound 0 'hiding all of it gains at most 1.11 ×' \
    "$prony" profile $recorded/copy.pageable.trace.gz
cp $recorded/item.never.trace.gz "$folder/run.trace.gz"
expect keeps_its_input 2 'run.trace.gz' \
    "$prony" profile "$folder/run.trace.gz" --trace "$folder/run.trace.gz"

"$prony" profile $recorded/item.every.trace.gz --json --trace "$folder/t.json" --folded "$folder/stacks" \
    --callgrind "$folder/callgrind.out" >"$folder/profile.json" 2>"$folder/errors"
report writes_all_files $? "$(cat "$folder/errors")"
if command -v python3 >/dev/null; then
    python3 - "$folder" <<'PYTHON'
import json, sys
folder = sys.argv[1]
profile = json.load(open(folder + "/profile.json"))
budget = profile["budget"]
assert sum(ns for part, ns in budget.items() if part != "window_ns") == budget["window_ns"], budget
assert profile["findings"][0]["rule"] == "R3", profile["findings"]
assert profile["findings"][0]["line"] == "train_gpu.py:72"
spans = [event for event in json.load(open(folder + "/t.json"))["traceEvents"] if event["ph"] == "X"]
assert len([event for event in spans if event["cat"] == "kernel"]) == 1827, len(spans)
stacks = [line.rsplit(" ", 1) for line in open(folder + "/stacks")]
kernels = sum(event["dur"] for event in spans if event["cat"] in ("kernel", "copy", "fill"))
assert abs(sum(int(us) for _, us in stacks) - kernels) < 0.01 * kernels
assert any("train_gpu.py:26" in stack for stack, _ in stacks)
assert "events: ns" in open(folder + "/callgrind.out").read()
PYTHON
    report files_agree $? "see above"
fi
# What is written is read again: a timeline of ours has the same kernels.
expect reads_its_own_timeline 0 'kernels, longest first' "$prony" profile "$folder/t.json"

# Of our own networks. What is worth it depends on the machine, but a batch of 1 always is too small.
expect says_what_it_tried 0 'tried: ' "$prony" advise small --batch 1 --seconds 0.05 --store "$folder/own.db"
expect takes_no_fusion 0 'tried: ' "$prony" advise small --batch 8 --seconds 0.05 --no-fusion \
    --store "$folder/own.db"
case $output in *'--fusion on'*) held=0 ;; *) held=1 ;; esac
report tries_fusion_where_it_is_off $held "$output"
expect proves_by_runs_in_turns 0 'measured' "$prony" advise small --batch 1 --seconds 0.1 --prove --rounds 2 \
    --store "$folder/own.db"
expect keeps_the_proofs 0 'proofs: ' "$prony" advise --rules --store "$folder/own.db"
expect knows_networks 2 "did you mean 'small'" "$prony" advise smal
expect knows_phases 2 'phase' "$prony" advise small --phase learning
expect needs_no_lever_for_networks 2 'expected it with a COMMAND' "$prony" advise small --lever passive
"$prony" advise small --batch 1 --seconds 0.05 --json --store "$folder/own.db" 2>/dev/null |
    python3 -c '
import json, sys
found = json.load(sys.stdin)
assert len(found["findings"]) == len(found["changes"]), found
assert all(f["gain"] >= 1.05 and f["low"] <= f["gain"] <= f["high"] for f in found["findings"]), found
assert "--batch" in found["tried"] and found["bound"], found'
report writes_an_object $? "see above"
exit $status
