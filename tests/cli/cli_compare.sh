# prony compare: what is matched, what is compared, and what it is called. The records are made up.

suite=cli_compare
. tests/shell/command.sh

# record POINT STATUS RESULT [GOAL]: a line of a file.
record() {
    printf '{"prony":1,"kind":"result","point":{"framework":"prony","model":"small",%s},"status":"%s"%s,"result":{%s}}\n' \
        "$1" "$2" "${4:+,\"goal\":\"$4\"}" "$3"
}
# timed MEDIAN: what a measurement gave.
timed() { echo "\"time_ns\":{\"min\":$1,\"median\":$1,\"mean\":$1,\"ci_low\":$1,\"ci_high\":$1,\"count\":9,\"per\":1}"; }

# Of a server the rate counts: at a higher one its queries wait longer.
server='"phase":"inference","batch":1,"scenario":"server"'
record "$server" ok "$(timed 1000),\"meters\":{\"rate\":600}" p99=1e+07ns >"$folder/slow.jsonl"
record "$server" ok "$(timed 9000),\"meters\":{\"rate\":970}" p99=1e+07ns >"$folder/fast.jsonl"
record "$server" ok "$(timed 9000),\"meters\":{\"rate\":970}" p99=2e+07ns >"$folder/easy.jsonl"
expect compares_rates 0 '600 queries/s  970 queries/s      0.619' \
    "$prony" compare "$folder/slow.jsonl" "$folder/fast.jsonl" --fail-if-slower 5%
expect fails_for_a_lower_rate 1 'cannot be judged: slower by more than 5 %' \
    "$prony" compare "$folder/fast.jsonl" "$folder/slow.jsonl" --fail-if-slower 5%
expect tells_bounds_apart 2 'no configuration in common' \
    "$prony" compare "$folder/slow.jsonl" "$folder/easy.jsonl"

# Of a training to a target the time until it, and how many seeds got there.
target='"phase":"training","batch":8,"scenario":"target"'
reach() { # NAME STEP TIME REACHED GOAL
    record "$target" ok "$(timed "$2"),\"meters\":{\"target_time\":$3,\"reached\":$4}" \
        "accuracy=$5 on iris, seeds 1-3" >"$folder/$1.jsonl"
}
reach low 500 0.5 1 0.6
reach high 500 2 1 0.95
reach later 400 0.7 1 0.6
reach fewer 400 0.4 0.33 0.6
reach never 400 '"not available: no seed got there"' 0 0.6
expect tells_goals_apart 2 'no configuration in common' \
    "$prony" compare "$folder/low.jsonl" "$folder/high.jsonl"
expect compares_times_to_a_target 1 '500 ms by 100 %  700 ms by 100 %      1.400' \
    "$prony" compare "$folder/low.jsonl" "$folder/later.jsonl" --fail-if-slower 5%
expect fails_when_fewer_seeds_get_there 1 'reached by fewer seeds now' \
    "$prony" compare "$folder/low.jsonl" "$folder/fewer.jsonl" --fail-if-slower 5%
expect sees_that_more_seeds_get_there 0 'never by 0 %  500 ms by 100 %  faster' \
    "$prony" compare "$folder/never.jsonl" "$folder/low.jsonl" --fail-if-slower 5%
expect compares_what_never_gets_there 0 "never by 0 %  never by 0 %  can't tell" \
    "$prony" compare "$folder/never.jsonl" "$folder/never.jsonl" --fail-if-slower 5%

# Whatever tells two configurations apart is said of them; what all share is not.
for axes in '"optimiser":"sgd","isa":"avx2"' '"optimiser":"adam","isa":"avx2"' \
    '"optimiser":"sgd","isa":"scalar"' '"optimiser":"sgd","isa":"avx2","fusion":"off"'; do
    record "\"phase\":\"training\",\"batch\":1,\"scenario\":\"iterate\",$axes" ok "$(timed 100)"
done >"$folder/axes.jsonl"
output=$("$prony" compare "$folder/axes.jsonl" "$folder/axes.jsonl")
[ "$(echo "$output" | grep '100 ns  100 ns' | sort -u | wc -l)" = 4 ] && ! echo "$output" | grep -q iterate &&
    echo "$output" | grep -q '^optimiser  isa     fusion ' && echo "$output" | grep -q '^sgd        avx2    off '
report names_what_differs $? "$output"

# Where others used the machine, nothing is said, and nothing passes.
busy='"phase":"training","batch":1,"threads":1'
record "$busy" ok "$(timed 100)" >"$folder/quiet.jsonl"
record "$busy" ok "$(timed 200),\"meters\":{\"other_load\":1.5,\"steal\":0}" >"$folder/crowded.jsonl"
record "$busy" ok "$(timed 200),\"meters\":{\"other_load\":0.1,\"steal\":0}" >"$folder/alone.jsonl"
expect says_nothing_of_a_disturbed_pair 0 "2.000 to 2.000  can't tell*" \
    "$prony" compare "$folder/quiet.jsonl" "$folder/crowded.jsonl"
expect says_what_disturbed_it 0 'disturbed by other programs' \
    "$prony" compare "$folder/crowded.jsonl" "$folder/quiet.jsonl"
expect lets_no_disturbed_pair_pass 1 "1 of 1 can't be judged: the machine was disturbed" \
    "$prony" compare "$folder/quiet.jsonl" "$folder/crowded.jsonl" --fail-if-slower 5%
expect stops_an_undisturbed_one 1 '1 of 1 became slower by more than 5 %' \
    "$prony" compare "$folder/quiet.jsonl" "$folder/alone.jsonl" --fail-if-slower 5%

# What failed in both files is in both.
record '"phase":"training","batch":3' failed '' >>"$folder/axes.jsonl"
expect counts_what_failed_in_both 0 \
    '4 configurations in both; 0 only in the old file, 0 only in the new one; 1 failed in both' \
    "$prony" compare "$folder/axes.jsonl" "$folder/axes.jsonl" --fail-if-slower 5%
sed 's/"status":"failed"/"status":"ok"/; s/"result":{}/"result":{'"$(timed 100)"'}/' "$folder/axes.jsonl" \
    >"$folder/mended.jsonl"
expect counts_what_was_mended 0 '1 failed before, and not now' \
    "$prony" compare "$folder/axes.jsonl" "$folder/mended.jsonl" --fail-if-slower 5%
grep failed "$folder/axes.jsonl" >"$folder/failed.jsonl"
expect compares_nothing_that_failed 2 'all common configurations failed in the old file' \
    "$prony" compare "$folder/failed.jsonl" "$folder/failed.jsonl"
exit $status
