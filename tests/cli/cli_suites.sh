# The suites of kinds and of the choice between them, line by line as they are, but with less of
# everything: smaller batches, shorter times, one seed, an easier target, no other frameworks.

suite=cli_suites
. tests/shell/command.sh

# results NAME COUNT PATTERN: as many results as that, all of which hold the pattern.
results() {
    found="$(grep -c '"kind":"result"' "$folder/$1.jsonl") $(grep '"kind":"result"' "$folder/$1.jsonl" | grep -c "$3")"
    [ "$found" = "$2 $2" ]
    report "$1_gives_every_result" $? "found $found, expected $2 $2: $(cut -c1-300 "$folder/$1.jsonl")"
}

sed 's/--framework prony,pytorch //; s/--batch 64/--batch 4/; s/--seconds 0.5/--seconds 0.02/' \
    suites/kinds.suite >"$folder/kinds.suite"
expect times_one_of_each_kind 0 correct "$prony" suite "$folder/kinds.suite" --out "$folder/kinds.jsonl"
results kinds 24 '"verdict":"right"' # 12 networks, training and inference
for model in mlp:784-500-500-10 autoencoder vae cvae rbm dbn gan dcn deconv rnn gru adding; do
    [ "$(grep -c "\"kind\":\"result\".*\"model\":\"$model\"" "$folder/kinds.jsonl")" -eq 2 ]
    report "kinds_has_$(echo $model | tr ':-' '__')" $? "no training and inference of $model"
done

# Weights that start at zero never learn, so they are left out.
sed 's/accuracy=0.97/accuracy=0.3/; s/--seeds 5 --patience 5/--seeds 1 --patience 60/; s/ [^ ]*:zeros / /' \
    suites/choosing.suite >"$folder/choosing.suite"
expect compares_kinds_and_starts 0 '1 of 1 seeds' \
    "$prony" suite "$folder/choosing.suite" --out "$folder/choosing.jsonl"
results choosing 14 '"reached":1[,}]'

# What a GPU does of the chart is checked: a reference of thousands of GFLOP needs more than the usual patience.
impatient=$(grep -e '--batch 64' suites/dlpg.suite | grep -v -e '--patience 60')
grep -q -e '--batch 64' suites/dlpg.suite && [ -z "$impatient" ]
report the_chart_is_checked_on_a_gpu $? "without --patience 60: $impatient"
grep -q -e '--phase inference --batch 16 --precision fp32,tf32,bf16,fp16,int8 --unit cpu' suites/dlpg.suite
report the_chart_has_int8 $? "$(cat suites/dlpg.suite)"
exit $status
