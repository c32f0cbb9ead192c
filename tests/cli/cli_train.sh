#!/bin/sh
# prony train and prony predict as a user runs them: what they say, what they leave behind, and what
# they refuse.
suite=cli_train
. tests/shell/working.sh

# What is learnt: a share of 0.90 of the test rows at least.
expect small_learns 0 '^test accuracy \(9[0-9]\|100\)\.[0-9] %$' "$prony" train small iris
expect mlp_learns 0 '^test accuracy \(9[5-9]\|100\)\.[0-9] %$' "$prony" train mlp:4-16-16-3 iris
expect another_loss_is_kept 0 '^accuracy 9' sh -c "'$prony' train mlp:4-8-1 iris --loss mse --out levels &&
    '$prony' predict mlp:4-8-1 levels iris"
# A line of an epoch ends with a whole figure at any width, and has no time left below a second.
for width in 50 58 64 70 80 100; do
    COLUMNS=$width "$prony" train mlp:4-4-3 iris --epochs 20 --validate 0.2 --backend ref |
        sed -n '/^epoch/ { :more; N; s/\n  */ /; t more; P; D }'
done >epochs
if grep -q '^epoch' epochs && ! grep '^epoch' epochs | grep -v '\( %\|samples/s\|loss [0-9.e-]*\)$\|[1-9][0-9]* s left$'; then
    ok epochs_end_with_whole_figures
else
    fail epochs_end_with_whole_figures "$(cat epochs)"
fi
expect last_line_is_the_result 0 . sh -c "'$prony' train small iris | tail -n 1 | grep '^test '"
expect helps_with_a_command 0 'samples per update (8)' "$prony" help train
expect help_says_the_defaults 0 'samples per update (8)' "$prony" train --help

# What is computed again is the same, so that the saved networks are, byte for byte.
{
    echo 'input 64'
    for layer in 1 2 3 4 5 6 7 8; do printf 'dense 48\nlayer_norm\ntanh\ndropout 0.1\n'; done
    printf 'dense 10\nloss cross_entropy\n'
} >deep.net
expect trains_with_all_activations 0 '^test accuracy' "$prony" train deep.net digits --epochs 2 --batch 64 --out kept
expect trains_with_few_activations 0 '^test accuracy' \
    "$prony" train deep.net digits --epochs 2 --batch 64 --recompute --out again
if cmp -s kept again; then ok recompute_changes_nothing; else fail recompute_changes_nothing "files differ"; fi

# An ONNX file has its own weights, and takes the names of its classes from the data.
"$prony" train mlp:4-16-16-3 iris --out flowers >/dev/null
if "$prony" export mlp:4-16-16-3 flowers --out flowers.onnx >/dev/null 2>&1; then # there is protobuf-c
    expect an_exported_network_predicts 0 "^$("$prony" predict mlp:4-16-16-3 flowers iris | tail -n 1)$" \
        "$prony" predict flowers.onnx iris
    expect its_output_can_be_said 2 "it has no output 'tall:0'" "$prony" predict flowers.onnx:output=tall:0 iris
    printf '1,2,3,4,a\n1,2,3,4,b\n' >two.csv
    expect other_classes_are_refused 2 'found 2 classes, expected one for each of the 3 outputs' \
        "$prony" predict flowers.onnx two.csv
fi

# A regression on numbers, the label by name, from a file.
awk 'BEGIN { print "y,a,b"; for (i = 0; i < 60; i++) print (i % 7) * 0.1 - (i % 5) * 0.05 "," i % 7 "," i % 5 }' >line.csv
expect numbers_give_a_test_score 0 '^test R² 0\.9' "$prony" train mlp:2-8-1 line.csv --label y --out line.model
expect prediction_has_a_score 0 '^R² 0\.9' "$prony" predict mlp:2-8-1 line.model line.csv --label y

# Saved and predicted; a run that was stopped ends with the same bytes as one that was not.
expect saves 0 '^saved to whole' "$prony" train small iris --epochs 40 --out whole
expect asks_first_whether_it_can_save 1 '^0$' sh -c \
    "'$prony' train small iris --out nowhere/model | grep -c epoch"
expect predicts 0 '^accuracy [0-9.]* %$' "$prony" predict small whole iris --out said.csv
if [ "$(wc -l <said.csv)" -eq 151 ] && [ "$(head -n 1 said.csv)" = "class,value" ] &&
    [ "$(cut -d, -f1 said.csv | sort -u | tr '\n' ' ')" = "class setosa versicolor virginica " ]; then
    ok writes_predictions
else
    head -n 3 said.csv
    fail writes_predictions "unexpected content"
fi
expect predicts_without_labels 0 'virginica' sh -c \
    "cut -d, -f1-4 '$root/datasets/iris.csv' | tail -n 20 | '$prony' predict small whole -"

expect trains_half 0 '^saved to half' "$prony" train small iris --epochs 20 --out half
expect resumes 0 '^resumed after epoch 20' "$prony" train small iris --epochs 40 --resume half --out half
if cmp -s whole half; then ok resumed_is_identical; else fail resumed_is_identical "files differ"; fi

# Ctrl-C in the middle of a long run. (An ignored SIGINT, as a background job of sh has it, is no
# Ctrl-C: SIGTERM does the same.) So does a terminal that is closed, which may say so more than once.
interrupt() {
    rm -f output
    "$prony" train mlp:4-200-200-3 iris --threads 1 --epochs 1000000 --out stopped >output 2>&1 </dev/null &
    process=$!
    tries=0
    until grep -q 'backend simd' output || [ $((tries += 1)) -gt 600 ]; do sleep 0.1; done
    for signal; do kill -"$signal" $process; done
    wait $process
    status=$?
    resume=$(sed -n 's/.*To go on: prony //p' output)
    [ $status -eq 130 ] && [ "$resume" = "train mlp:4-200-200-3 iris --threads 1 --resume stopped --out stopped" ]
}
if interrupt HUP HUP; then ok hangup_saves; else cat output && fail hangup_saves "exit status $status"; fi
if interrupt TERM; then
    ok interrupt_saves
    reached=$(sed -n 's/.*interrupted after epoch \([0-9]*\);.*/\1/p' output)
    # shellcheck disable=SC2086
    expect interrupted_run_resumes 0 '^test accuracy' "$prony" $resume --epochs $((reached + 1))
else
    cat output
    fail interrupt_saves "exit status $status"
fi

# Killed between two steps or in the middle of one: what was saved on the way goes on to the same end.
# With rows held out, so that the best weights on the way are gone on with, too.
# On a quick machine it takes more epochs until a run can be killed before it is done.
for epochs in 70 280 1120 4480; do
    long="mlp:4-300-300-3 iris --epochs $epochs --validate 0.2"
    rm -f killed
    # shellcheck disable=SC2086
    "$prony" train $long --out killed >output 2>&1 </dev/null &
    process=$!
    tries=0
    until [ -f killed ] || [ $((tries += 1)) -gt 200 ]; do sleep 0.1; done
    kill -KILL $process 2>/dev/null
    wait $process 2>/dev/null
    status=$?
    [ $status -eq 0 ] || break
done
if [ $status -eq 0 ]; then
    fail killed_run_resumes "it was done before it could be killed, after $epochs epochs"
else
    # shellcheck disable=SC2086
    expect trains_long 0 '^saved to unkilled' "$prony" train $long --out unkilled
    expect killed_run_resumes 0 '^resumed after epoch' "$prony" train mlp:4-300-300-3 iris \
        --resume killed --out killed
    if cmp -s killed unkilled; then ok killed_is_identical; else fail killed_is_identical "files differ"; fi
fi

# Two classes, one output: what is right is known, and probabilities come out.
grep -v virginica "$root/datasets/iris.csv" >two.csv
printf 'input 4\ndense 8\ntanh\ndense 1\nloss binary_cross_entropy\n' >binary.net
expect binary_has_an_accuracy 0 '^test accuracy 100.0 %$' "$prony" train binary.net two.csv --epochs 20 --out binary
expect binary_predicts 0 '^accuracy 100.0 %$' "$prony" predict binary.net binary two.csv --out said.csv
if tail -n +2 said.csv | awk -F, '{ if (($1 == "versicolor") != ($2 > 0.5) || $2 < 0 || $2 > 1) exit 1 }'; then
    ok binary_gives_probabilities
else
    fail binary_gives_probabilities "$(head -n 3 said.csv)"
fi
expect stops_when_reached 0 '^best after epoch' "$prony" train mlp:4-16-3 iris --until accuracy=0.9 --epochs 100000
expect stops_without_patience 0 '^test accuracy' "$prony" train mlp:4-16-3 iris --patience 2 --epochs 100000

# A transformer block over tokens, with a label for each place: the same tokens one place later. (The
# first place cannot be known.)
awk 'BEGIN {
    for (i = 0; i < 300; i++) {
        line = labels = ""
        last = 0
        for (t = 0; t < 6; t++) {
            seed = (seed * 25173 + 13849) % 65536
            token = int(seed / 8192)
            line = line token ","
            labels = labels last (t < 5 ? "," : "")
            last = token
        }
        print line labels
    }
}' >tokens.csv
block=$root/examples/transformer.net
expect tokens_learn 0 '^test accuracy \(9[5-9]\|100\)\.[0-9] %$' "$prony" train "$block" tokens.csv \
    --label 7..12 --batch 32 --epochs 30 --out tokens
expect tokens_predict 0 '^accuracy \(9[5-9]\|100\)\.[0-9] %$' "$prony" predict "$block" tokens tokens.csv \
    --label 7..12 --out said.csv
if [ "$(head -n 1 said.csv | cut -d, -f1,6,7,54)" = "class1,class6,value1,value48" ] &&
    [ "$(sed -n 3p said.csv | cut -d, -f2-6)" = "$(sed -n 2p tokens.csv | cut -d, -f8-12)" ]; then
    ok writes_a_class_for_each_place
else
    head -n 3 said.csv
    fail writes_a_class_for_each_place "unexpected content"
fi

# An independent reader of the published layout.
if command -v python3 >/dev/null 2>&1; then
    cat >reader.py <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8 : 8 + length])
notes = header.pop("__metadata__")
assert all(isinstance(value, str) for value in notes.values())
assert json.loads(notes["classes"]) == ["setosa", "versicolor", "virginica"]
body, total, end = data[8 + length :], 0, 0
for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    start, stop = tensor["data_offsets"]
    letter = {"F32": "f", "I32": "i"}[tensor["dtype"]]
    count = 1
    for size in tensor["shape"]:
        count *= size
    assert start == end and stop - start == 4 * count
    values = struct.unpack("<%d%s" % (count, letter), body[start:stop])
    if not name.startswith("state."):
        assert all(abs(value) < 1e3 for value in values)
        total += count
    end = stop
assert end == len(body) and length % 8 == 0
print(total, "parameters")
END
    expect other_readers_understand 0 '^62 parameters$' python3 reader.py whole
else
    echo "skip cli_train.other_readers_understand: no python3"
fi

# Refusals: each names what was found and what was expected; nothing is left behind.
printf 'a,b,c,d,kind\n1,2,3,4,x\n1,,3,4,y\n' >missing.csv
printf '1,2,3,4,x\n1,2,oops,4,y\n' >bad.csv
printf '1,2,3,4,setosa\n5,6,7,8,virginica\n9,8,7,6,versicolor\n' >three.csv
printf '1,2,3,4,x\n' >one.csv
head -c 100 whole >cut
sed '1s/^./8/' tokens.csv >tokens8.csv
refuse() {
    name=$1 text=$2
    shift 2
    expect "refuses_$name" 2 "$text" "$prony" "$@"
}
refuse unknown_data "did you mean 'iris'" train small iriss
refuse unknown_network "smal" train smal iris
refuse unknown_option "did you mean --rate" train small iris --rat 1
refuse missing_value 'missing.csv:3:3: found a missing value in column b.*--fill median.*--drop-rows' train small missing.csv
refuse bad_value "bad.csv:2:5: found 'oops', expected a number" train small bad.csv
refuse bad_label "found no label column 'q'" train small iris --label q
refuse too_few_inputs 'found 4 feature columns, expected 5' train mlp:5-3 iris
refuse too_few_outputs 'found 2 outputs, expected one for each of 3' train mlp:4-2 iris
refuse no_token 'tokens8.csv: row 1, value 1: found 8, expected a token: a whole number from 0 to 7' \
    train "$block" tokens8.csv --label 7..12
refuse too_few_labels 'found 11 feature columns, expected 6.*--label' train "$block" tokens.csv
refuse labels_backwards "found the label columns '12..7', expected the first before the last" \
    train "$block" tokens.csv --label 12..7
refuse several_labels 'found 2 labels a row to learn, expected 1' train mlp:10-8 tokens.csv --label 11..12
refuse zero_batch 'batch' train small iris --batch 0
refuse unknown_backend "'reff'" train small iris --backend reff
refuse unknown_optimiser "'sgdd'" train small iris --optimiser sgdd
refuse unknown_setting "adam has no argument 'bta'" train small iris --optimiser adam:bta=1
refuse unknown_schedule "there is no schedule 'linear'; there are: constant, step, cosine" train small iris --schedule linear
refuse rate_on_resume '\--rate cannot be given with --resume' train small iris --resume whole --rate 1
refuse cut_file 'cut: found a header' predict small cut iris
refuse other_network 'whole: found the weights of another network' predict mlp:4-3 whole iris
refuse other_data 'found a training on other data' train small three.csv --resume whole
refuse unknown_class "found the class 'x', expected one of 3: 'setosa'" predict small whole one.csv
expect refuses_missing_weights 1 'nowhere' "$prony" predict small nowhere iris
expect refuses_unwritable_folder 1 'no/such' "$prony" train small iris --epochs 1 --out no/such/file
expect diverging_says_so 1 'try a --rate below' "$prony" train mlp:4-16-16-3 iris --rate 100000
if ls | grep -q '\.tmp\|^no$'; then fail leaves_nothing_behind "$(ls)"; else ok leaves_nothing_behind; fi
exit $failures
