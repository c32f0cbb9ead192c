# prony profile, as a person uses it.

suite=cli_profile
. tests/shell/command.sh

expect helps 0 '--callgrind' "$prony" profile --help
expect shows_kernels 0 'dense_f32_ref' "$prony" profile small --backend ref --seconds 0.1
expect says_whether_it_adds_up 0 'timed alone, a step takes' "$prony" profile small --seconds 0.1
if "$prony" bench small --seconds 0.05 --format json 2>/dev/null | grep -q '"kernels":\["stack_f32'; then
    expect names_what_runs_the_whole_step 0 'the step is one kernel: it was watched inside' \
        "$prony" profile small --seconds 0.1
    says tells_its_layers_apart 'dense3 dense' sh -c \
        "'$prony' profile small --phase inference --seconds 0.1 | grep stack_f32"
    expect merges_nothing_in_a_plain_step 1 '' \
        sh -c "'$prony' profile lenet --seconds 0.1 | grep 'the timed step\|one kernel'"
else
    echo "skip cli_profile.names_what_runs_the_whole_step: no kernel runs it here"
fi
found=$("$prony" profile lenet --batch 64 --unit gpu --seconds 0.1 2>&1)
case $found in
*'no backend computes on gpu'*)
    echo "skip cli_profile.counts_launches: $(echo "$found" | tail -n 1)" ;;
*)
    holds counts_launches "$found" 'a step has '
    holds says_what_launches_mean "$found" 'hardly more than a launch takes' ;;
esac
expect wants_a_network 2 'NETWORK' "$prony" profile
expect knows_its_networks 2 "did you mean 'small'" "$prony" profile smal
expect knows_its_phases 2 'expected training or inference' "$prony" profile small --phase learning
expect knows_its_backends 2 'reff' "$prony" profile small --backend reff
sh -c 'while :; do :; done' & # somebody else, who is seen
busy=$!
expect says_what_disturbed_it 0 'the machine was disturbed, so that times may not add up: ' \
    "$prony" profile small --seconds 1
kill $busy
wait $busy 2>/dev/null
expect writes_two_files_to_two 2 'expected two files' \
    "$prony" profile small --trace "$folder/same" --callgrind "$folder/same"
expect says_what_it_cannot_write 1 'nowhere/t.json' \
    "$prony" profile small --seconds 0.1 --trace "$folder/nowhere/t.json"

"$prony" profile lenet --batch 2 --seconds 0.1 --json --trace "$folder/t.json" \
    --callgrind "$folder/callgrind.out" >"$folder/profile.json" 2>"$folder/errors"
report profiles_a_step $? "$(cat "$folder/errors")"
if command -v python3 >/dev/null; then
    python3 - "$folder" <<'PYTHON'
import json, sys
folder = sys.argv[1]
profile = json.load(open(folder + "/profile.json"))
assert len(profile["programs"]) == 1
program = profile["programs"][0]
assert set(program["parts"]) == {"prepare", "forward", "backward", "update"}, program["parts"].keys()
shares = sum(part["share"] for part in program["parts"].values())
assert abs(shares - 1) < 1e-6, shares
assert abs(sum(op["ns"] or 0 for op in program["ops"]) - profile["watched_ns"]) < 1e-3 * profile["watched_ns"]
trace = json.load(open(folder + "/t.json"))["traceEvents"]
spans = [event for event in trace if event["ph"] == "X"]
assert len(spans) >= len(program["ops"]) / 2, len(spans)
assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in spans)
PYTHON
    report writes_json_that_adds_up $? "see above"
fi
expect counts_no_launches_on_a_cpu 1 '' sh -c "'$prony' profile lenet --seconds 0.1 | grep launches"
expect profiles_each_program 0 'gan: generator' "$prony" profile gan --batch 4 --seconds 0.1 \
    --trace "$folder/gan.json" --callgrind "$folder/callgrind.gan"
if command -v python3 >/dev/null; then
    python3 - "$folder/gan.json" <<'PYTHON'
import json, sys
trace = json.load(open(sys.argv[1]))["traceEvents"]
names = {event["args"]["name"] for event in trace if event["name"] == "process_name"}
assert names == {"gan: discriminator", "gan: generator"}, names
assert {event["pid"] for event in trace if event["ph"] == "X"} == {1, 2}
PYTHON
    report traces_each_program $? "see above"
fi
grep -q '^cfi=gan: generator$' "$folder/callgrind.gan"
report calls_each_program $? "$(grep '^cfi' "$folder/callgrind.gan")"
if command -v callgrind_annotate >/dev/null; then
    callgrind_annotate "$folder/callgrind.out" 2>&1 | grep -q "conv1 conv_fused "
    report writes_what_callgrind_annotate_reads $? "$(callgrind_annotate "$folder/callgrind.out" 2>&1)"
else
    echo "skip cli_profile.writes_what_callgrind_annotate_reads: no callgrind_annotate"
fi
exit $status
