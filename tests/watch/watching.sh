# prony profile -- COMMAND: programs that know nothing of it, also those that make it hard.

suite=watching
. tests/shell/command.sh

cc=${CC:-cc}
for source in third awkward; do
    "$cc" -O1 -g0 -pthread -o "$folder/$source" tests/watch/$source.c || exit 1
done
report_of() { # NAME PART COMMAND…: the report (once, watched) contains PART
    name=$1 part=$2
    shift 2
    "$prony" profile --once -- "$@" >"$folder/out" 2>"$folder/report"
    holds "$name" "$(cat "$folder/report")" "$part"
}

# A third of the time, within what a few hundred samples allow (tests/long/shares.sh has more).
"$prony" profile --once --json --rate 200 -- "$folder/third" 400 >"$folder/third.json" 2>"$folder/its"
report passes_the_status_on $(($? != 3)) "expected status 3"
holds leaves_its_output "$(cat "$folder/its")" 'its own output'
"$prony" profile -- "$folder/third" 40 >"$folder/out" 2>"$folder/report"
holds times_it_unwatched "$(cat "$folder/report")" ' unwatched, '
found=$(cat "$folder/out")
[ "$found" = "its own output
its own output" ]
report says_nothing_on_its_output $? "$found"
echo hello | "$prony" profile --once -- cat 2>/dev/null | grep -q '^hello$'
report leaves_pipes_alone $? 'hello did not come through'

expect says_what_cannot_start 2 'nowhere/program: it cannot be started: No such file' \
    "$prony" profile -- /nowhere/program
expect wants_a_command 2 'expected a command' "$prony" profile --
expect takes_one_of_two 2 'expected one of them' "$prony" profile small -- true
report_of sees_a_short_one 'It did not run long enough' true
expect passes_a_signal_on 137 'was killed by signal 9' "$prony" profile --once -- sh -c 'kill -9 $$'
"$prony" profile --once --seconds 0.5 -- sleep 60 >/dev/null 2>"$folder/report"
holds stops_in_time "$(cat "$folder/report")" 'stopped before its end'
holds says_where_it_waits "$(cat "$folder/report")" 'clock_nanosleep'

# Ctrl-C: the program gets it too, and what was seen is shown.
"$prony" profile --once -- sleep 60 >/dev/null 2>"$folder/report" &
child=$!
sleep 1
kill -INT $child
wait $child
holds shows_what_it_has_when_stopped "$(cat "$folder/report")" 'clock_nanosleep'

# Programs that make it hard; each says by its status whether it went well.
for way in descriptors signal blocks deep tiny fork exec threads; do
    "$prony" profile --once -- "$folder/awkward" $way >/dev/null 2>"$folder/report.$way"
    report survives_$way $? "$(cat "$folder/report.$way")"
done
holds sees_behind_closed_descriptors "$(cat "$folder/report.descriptors")" 'spin'
holds says_who_does_not_answer "$(cat "$folder/report.signal")" 'own handler of SIGURG'
holds says_who_blocks "$(cat "$folder/report.blocks")" 'block signals'
holds sees_into_deep_stacks "$(cat "$folder/report.deep")" 'deeper'
holds sees_children "$(cat "$folder/report.fork")" '2 processes'
holds sees_threads "$(cat "$folder/report.threads")" '5 threads'

# The files that other tools read.
"$prony" profile --once --rate 200 --out "$folder/run.trace" --trace "$folder/t.json" \
    --callgrind "$folder/callgrind.out" --folded "$folder/folded" -- "$folder/third" 100 >/dev/null 2>&1
grep -q 'main@third;batch@third;work@third [0-9]' "$folder/folded" && grep -q '^fn=' "$folder/callgrind.out" &&
    grep -q '"ph":"X"' "$folder/t.json"
report writes_files_for_other_tools $? "$(head -3 "$folder/folded" "$folder/callgrind.out")"
expect reads_its_own_file 0 'ops and functions, themselves' "$prony" profile "$folder/run.trace"
"$prony" advise --once -- sh -c 'exit 3' >/dev/null 2>"$folder/report"
holds says_in_advice_how_it_ended "$(cat "$folder/report")" 'The program ended with status 3'
"$prony" advise --once -- sleep 2.2 >/dev/null 2>"$folder/report"
holds says_that_it_waits "$(cat "$folder/report")" 'the first one waits in clock_nanosleep'

# Advice and its proof; tests/long/proofs.sh has those that take minutes.
says compares_two_commands 'measured ' \
    "$prony" advise --once --against 'sleep 0.02' --rounds 4 --store "$folder/store.db" -- sleep 0.1
expect proves_nothing_with_a_run_that_fails 1 'nothing can be proved' \
    "$prony" advise --once --against false --rounds 2 -- true
expect knows_its_levers 2 'did you mean' \
    "$prony" advise --prove --lever blas_on -- true
expect proves_programs_only 2 'expected it with a network or a program' "$prony" advise --prove "$folder/run.trace"

if "$cc" -static -O1 -pthread -o "$folder/static" tests/watch/awkward.c 2>/dev/null; then
    report_of says_why_there_are_no_stacks 'no agent answered: the program is static' \
        "$folder/static" threads
fi

python=/usr/bin/python3
case $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) in
3.11 | 3.12 | 3.13)
    "$prony" profile --once --json -- "$python" tests/watch/third.py 2 >"$folder/python.json"
    "$python" - "$folder" <<'PYTHON'
import json, sys
folder = sys.argv[1]

def share(profile, name):
    return sum(row["share"] for row in profile["functions"] if row["name"] == name)

python = json.load(open(folder + "/python.json"))
lines = {(row["file"].rsplit("/")[-1], row["line"]) for row in python["lines"]}
assert ("third.py", 9) in lines, lines
both = share(python, "batch") + share(python, "step")
assert both > 0.5, both
# A busy machine gives few samples: four standard deviations, and some that start and end it.
samples = python["samples"]
assert abs(share(python, "batch") / both - 1 / 3) < 0.1 + 4 * (2 / 9 / samples) ** 0.5, (both, samples)
assert python["with_line"] >= 0.9 * python["of_python"] - 5, python
assert python["torn"] <= 0.01 * python["of_python"] + 2, python
assert any(row["name"] == "clock_nanosleep" for row in python["waits"]), python["waits"]
waits = [row for row in python["waits"] if row["name"] == "clock_nanosleep"]
assert 0.2e9 < waits[0]["ns"] < 5e9, waits

c = json.load(open(folder + "/third.json"))
assert c["samples"] > 0 and c["names"][0]["name"] == "work", c["names"]
PYTHON
    report names_lines_of_python $? 'see above' ;;
*) echo "skip watching.names_lines_of_python: $python is not of a version that is known" ;;
esac

exit $status
