# The records that ship are checked and were not disturbed; tools/results finds those that are not, and those whose
# kernels have changed since.

suite=results
. tests/shell/command.sh
if ! command -v python3 >/dev/null; then
    echo "skip $suite: python3 is not installed"
    exit 0
fi

expect what_ships_may 0 '' tools/results refused

# result STATUS VERDICT LOW HIGH COUNT NOTE: a record of 100 ns.
result() {
    printf '{"prony":1,"kind":"result","status":"%s","reason":"%s","kernels":["load_f32_ref"],' "$1" "$6"
    printf '"point":{"framework":"%s","backend":"ref","model":"small","phase":"training","batch":1,"precision":"fp32",' "${7:-prony}"
    printf '"unit":"cpu","threads":1,"scenario":"iterate"},"samples_ns":[99,101],'
    printf '"result":{"time_ns":{"median":100,"ci_low":%s,"ci_high":%s,"count":%s},"check":{"verdict":"%s"}},' "$3" "$4" "$5" "$2"
    printf '"software":{"commit":"%s"}}\n' "${commit:-none}"
}
# refuses NAME WHY RESULT…: such a record must not ship.
refuses() {
    name=$1 why=$2
    shift 2
    result "$@" >"$folder/one.jsonl"
    expect "refuses_$name" 1 "$why" tools/results refused "$folder/one.jsonl"
}
result ok right 98 102 50 '' >"$folder/good.jsonl"
result ok right 90 110 6 'time was up; x' prony | sed 's/:90,/:97,/; s/:110,/:103,/' >>"$folder/good.jsonl"
result ok right 99.5 100.5 6 '' >>"$folder/good.jsonl"
result ok right null null 1 'measured once: it outruns the time given' >>"$folder/good.jsonl"
result ok right 98 102 50 'the host took 2 % of a CPU away' >>"$folder/good.jsonl"
expect takes_what_is_good 0 '' tools/results refused "$folder/good.jsonl"
refuses failures failed failed right 98 102 50 'it broke'
refuses the_unchecked unchecked ok none 98 102 50 ''
refuses the_wrong unchecked ok wrong 98 102 50 ''
refuses wide_intervals '± 6 %' ok right 94 106 50 ''
refuses few_samples '6 samples' ok right 98 102 6 'not steady after the warm-up'
refuses a_busy_machine 'others kept 1.1 cores busy' ok right 98 102 50 'x; others kept 1.1 cores busy'
refuses a_share_of_a_cpu 'had a CPU for 46 %' ok right 98 102 50 'it had a CPU for 46 % of the time'
refuses a_greedy_host 'the host took 34 %' ok right 98 102 50 'the host took 34 % of a CPU away'
# off DIFFERENCE TOLERANCE: a record whose check ended so.
off() { result ok right 98 102 50 '' | sed "s/\"verdict\":\"right\"/&,\"difference\":$1,\"tolerance\":$2/"; }
off 0.74 1.24 >"$folder/one.jsonl"
expect refuses_checks_that_prove_nothing 1 'its check proves nothing: off by 0.74, and 1.24 would pass' \
    tools/results refused "$folder/one.jsonl"
{ off 0.003 0.8 && off 0.2 0.3; } >"$folder/one.jsonl"
expect takes_a_small_difference 0 '' tools/results refused "$folder/one.jsonl"
result ok right 98 102 50 '' pytorch | sed 's/"prony":1,/"prony":1,"handicap":"reference BLAS (netlib)",/' >"$folder/one.jsonl"
expect refuses_handicaps 1 'handicapped: reference BLAS' tools/results refused "$folder/one.jsonl"

# One that took turns with a record that stays says that it was there.
{
    result ok right 98 102 50 ''
    result ok right 90 110 50 '' numpy
    result ok none 98 102 50 '' alone | sed 's/"batch":1/"batch":2/'
} >"$folder/turns.jsonl"
expect drops 0 '2 of 3 lines' tools/results drop "$folder/turns.jsonl"
says what_took_turns_is_skipped '2' grep -c . "$folder/turns.jsonl"
says it_says_why '"status":"skipped","reason":"not shipped: disturbed: known to ± 10 %"' cat "$folder/turns.jsonl"
expect nothing_is_left_to_drop 0 '' tools/results refused "$folder/turns.jsonl"

# A unit's name comes from the record's own machine, and from nowhere else.
{
    result ok right 98 102 50 '' numpy | sed 's/"software":/"machine":{"cpu":"AMD EPYC"},"software":/'
    result ok right 98 102 50 '' numpy
} >"$folder/unnamed.jsonl"
expect names_units 0 '1 units named, 1 left without' tools/results name "$folder/unnamed.jsonl"
says by_their_machine '"scenario":"iterate","unit_name":"AMD EPYC"' head -1 "$folder/unnamed.jsonl"
expect and_not_twice 0 '0 units named, 1 left without' tools/results name "$folder/unnamed.jsonl"
expect all_that_ship_are_named 0 '' \
    python3 -c 'import glob, json; [json.loads(l)["point"]["unit_name"] for f in glob.glob("results/*.jsonl") for l in open(f) if "\"kind\":\"result\"" in l[:30]]'

# A kernel's sources: in a repository of its own, so that nothing depends on this one's history.
tree=$folder/tree
mkdir -p "$tree/tools" "$tree/src/backend/cpu/ref" "$tree/peers"
cp tools/results "$tree/tools"
printf '#include "backend/cpu/ref/real.h"\nvoid ref_load(void);\n' >"$tree/src/backend/cpu/ref/ref_data.c"
echo 'int real;' >"$tree/src/backend/cpu/ref/real.h"
echo 'void ref_other(void);' >"$tree/src/backend/cpu/ref/ref_other.c"
keep() { (cd "$tree" && git add -A && git -c user.name=t -c user.email=t@t commit -qm x && git rev-parse HEAD); }
if ! (cd "$tree" && git init -q . 2>/dev/null) || ! commit=$(keep); then
    echo "skip $suite.stale: no git"
    exit $status
fi
result ok right 98 102 50 '' >"$folder/kept.jsonl"
stale() { "$tree/tools/results" stale "$folder/kept.jsonl"; }
expect nothing_changed 0 '' stale
[ -z "$(stale)" ]
report what_is_as_it_was_is_not_listed $? "$(stale)"
echo '/* more */' >>"$tree/src/backend/cpu/ref/ref_other.c"
[ -z "$(stale)" ]
report another_kernels_source_does_not_count $? "$(stale)"
echo '/* more */' >>"$tree/src/backend/cpu/ref/real.h"
says what_it_includes_counts 'real.h has changed (load_f32_ref)' stale
says the_command_is_told 'build/prony bench small --framework prony --backend ref' stale
keep >/dev/null
says commits_count_too 'real.h has changed' stale
rm "$tree/src/backend/cpu/ref/ref_data.c"
says a_kernel_that_is_gone 'there is no load_f32_ref any more' stale
commit=0123456789 && result ok right 98 102 50 '' >"$folder/kept.jsonl"
says a_commit_that_is_not_here 'its commit is not known' stale

# Measuring puts new records in the place of stale ones; a bench is made up here.
mkdir -p "$tree/build"
cat >"$tree/build/prony" <<'SCRIPT'
#!/bin/sh
while [ "$1" != --out ]; do shift; done
sed 's/"median":100/"median":50/; s/:98,/:49,/; s/:102,/:51,/' "$KEPT" >"$2"
SCRIPT
chmod +x "$tree/build/prony"
cp "$folder/kept.jsonl" "$folder/old.jsonl"
says measures_what_is_stale '1 records are new' env KEPT="$folder/old.jsonl" "$tree/tools/results" measure "$folder/kept.jsonl"
says the_new_one_is_there '"median":50' cat "$folder/kept.jsonl"
exit $status
