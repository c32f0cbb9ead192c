# What tools/sanitize-gpu looks at on a GPU is there: a name that no test has any more would cost a run of it.

suite=gpu_pieces
. tests/shell/command.sh

if [ ! -f "$PRONY_BUILD/prony_cuda.so" ]; then
    echo "skip $suite.pieces_are_tests: CUDA's plugin is not in this build"
    exit 0
fi
tools/sanitize-gpu list "$PRONY_BUILD" >"$folder/pieces" # TOOL SECONDS TEST NAME…
for tool in memcheck racecheck; do
    awk -v tool=$tool '$1 == tool { sub("[.]own$", "", $3); for (i = 4; i <= NF; i++) { sub("/.*", "", $i); print $3, $i } }' \
        "$folder/pieces" | sort -u >"$folder/$tool"
    for test in $(cut -d ' ' -f 1 "$folder/$tool" | sort -u); do
        "$PRONY_BUILD/tests/$test" --list | sed "s/^/$test /"
    done | sort -u | comm -23 "$folder/$tool" - >"$folder/missing"
    [ -s "$folder/$tool" ] && [ ! -s "$folder/missing" ]
    report "pieces_of_${tool}_are_tests" $? "$(wc -l <"$folder/$tool") names, missing: $(cat "$folder/missing")"
done
exit $status
