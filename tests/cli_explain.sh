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
expect says_it_as_json '"kind":"network","network":{"model":"small","phase":"inference","batch":1,' small --json
expect names_kernels_in_json '"kernel":"dense_f32_ref"' small --json --backend ref
expect classes_make_probabilities 'y = softmax(dense2)' mlp:4-8-3 --classes 3
expect refuses_another_phase 'expected training or inference' small --phase learning
expect refuses_another_backend "did you mean 'ref'" small --backend reff
expect needs_a_network "found 0 arguments, expected 1"
expect takes_another_loss 'binary_cross_entropy(dense2, target)' \
    mlp:4-3-1 --phase training --loss binary_cross_entropy
expect refuses_another_loss "there is no loss 'mce'; did you mean 'mse'?" small --loss mce
expect refuses_another_optimiser "there is no optimiser 'sgdd'" small --phase training \
    --optimiser sgdd

# A network whose parameters would not fit is explained all the same: none of them is allocated.
found=$(ulimit -v 400000 && "$prony" explain wide --phase training --batch 64 --backend ref 2>&1)
case $found in
*"param 805 MB"*) echo "ok   cli_explain.allocates_no_parameter" ;;
*)
    printf '%s\nFAIL cli_explain.allocates_no_parameter\n' "$found"
    status=1
    ;;
esac
exit $status
