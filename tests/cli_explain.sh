# prony explain: its text against golden files, its JSON, and what it refuses. Where a change is meant,
# the command in the message makes the golden file anew.

prony=$PRONY_BUILD/prony
status=0

# golden FILE ARGUMENTS…
golden() {
    name=explain_$1 file=tests/golden/explain_$1.txt
    shift
    if "$prony" explain "$@" 2>&1 | diff "$file" -; then
        echo "ok   cli_explain.$name"
    else
        printf '%s\n' "if this is meant: prony explain $* >$file" "FAIL cli_explain.$name"
        status=1
    fi
}
golden small small
golden small_training small --phase training --batch 3 --backend ref
golden small_unfused small --phase training --batch 3 --backend ref --no-fusion

# expect NAME PART ARGUMENTS…: what it says, errors included, contains PART.
expect() {
    name=$1 part=$2
    shift 2
    output=$("$prony" explain "$@" 2>&1)
    case $output in
    *"$part"*) echo "ok   cli_explain.$name" ;;
    *)
        printf 'found "%s", expected "%s"\nFAIL cli_explain.%s\n' "$output" "$part" "$name"
        status=1
        ;;
    esac
}
expect says_it_as_json '"kind":"network","model":"small","batch":1,' small --json
expect names_kernels_in_json '"kernel":"dense_f32_ref"' small --json --backend ref
expect classes_make_probabilities 'y = softmax(dense2)' mlp:4-8-3 --classes 3
expect refuses_another_phase 'expected training or inference' small --phase learning
expect refuses_another_backend "did you mean 'ref'" small --backend reff
expect needs_a_network "found 0 arguments, expected 1"
exit $status
