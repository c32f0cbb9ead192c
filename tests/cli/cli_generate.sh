#!/bin/sh
# prony generate as a user runs it, and recipes on the command line of the others: files it writes, and
# what it refuses.
suite=cli_generate
. tests/shell/working.sh

# same NAME EXPECTED FOUND
same() {
    if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" "found '$3', expected '$2'"; fi
}

cat >vae.net <<'END'
recipe vae
optimiser adam rate=0.005
loss binary_cross_entropy
network encoder
input 64
dense 32
relu
dense 8
network decoder
input 4
dense 32
relu
dense 64
END
printf 'input 64\ndense 16\nsigmoid\n' >rbm.net
printf 'input 64\ndense 10\nloss cross_entropy\n' >small_mlp.net
expect trains 0 'test loss' "$prony" train vae.net digits --epochs 2 --batch 32 --out vae.st
expect shows_the_first 0 'out FILE writes all' "$prony" generate vae.net vae.st
expect writes_csv 0 '20 samples' "$prony" generate vae.net vae.st --count 20 --out a.csv
same csv_has_all '20 1280' "$(wc -l <a.csv | tr -d ' ') $(tr , '\n' <a.csv | wc -l | tr -d ' ')"
expect writes_npy 0 '20 samples' "$prony" generate vae.net vae.st --count 20 --out a.npy
same npy_has_all "$((128 + 20 * 64 * 4))" "$(wc -c <a.npy | tr -d ' ')"
expect writes_pictures 0 '9 samples' "$prony" generate vae.net vae.st --count 9 --out a.pgm
same pictures_are_a_square 'P5 27 27' "$(head -n 2 a.pgm | tr '\n' ' ' | sed 's/ $//')"
"$prony" generate vae.net vae.st --count 20 --out b.csv >/dev/null
"$prony" generate vae.net vae.st --count 20 --seed 2 --out c.csv >/dev/null
cmp -s a.csv b.csv && ! cmp -s a.csv c.csv
same seed_decides 0 $?
expect reads_its_npy 0 '… more values; --out' "$prony" predict vae.net vae.st a.npy
expect trains_rbm 0 'test loss' "$prony" train rbm.net digits --recipe rbm:chains=5 --epochs 1 --batch 32 --out rbm.st
expect knows_its_recipe 0 '4 samples' "$prony" generate rbm.net rbm.st --sweeps 20 --count 4 --out r.pgm
expect condition_needs_classes 2 'learns on a condition' "$prony" train vae.net a.npy --recipe vae:condition=1
expect no_condition 2 'without a condition' "$prony" generate vae.net vae.st --class 3
expect no_picture 2 'expected HxW' "$prony" generate vae.net vae.st --shape 7x9 --out d.pgm
expect no_format 2 'expected .csv, .npy or .pgm' "$prony" generate vae.net vae.st --out d.jpeg
"$prony" train small iris --epochs 1 --out small.st >/dev/null
expect only_some_generate 2 'expected one that can generate' "$prony" generate small small.st
expect recipe_stays 2 'cannot be given with --resume' "$prony" train rbm.net digits --resume rbm.st --recipe rbm
expect explains_both 0 'd(generator.dense1.weight) = outer' env COLUMNS=300 "$prony" explain gan --phase training --no-fusion
same one_line 1 "$("$prony" explain gan --phase training --json | wc -l | tr -d ' ')"
expect two_programs 0 '"name":"gan: discriminator".*"name":"gan: generator"' \
    "$prony" explain gan --phase training --json
expect names_stages 0 'digits_dbn: stage 4 of 4' "$prony" explain digits_dbn --phase training
expect learns_from_few_labels 0 '1438 rows to learn from, 40 of them labelled' \
    "$prony" train digits_dbn digits --labelled 40 --epochs 16 --batch 16 --out few.st
expect goes_on_with_few 0 'resumed after epoch 16' \
    "$prony" train digits_dbn digits --resume few.st --epochs 17 --out few.st
expect stages_need_epochs 2 'more than the 15 of its first 3 stages (5 each): --epochs 16' \
    "$prony" train digits_dbn digits --epochs 15
expect labels_need_targets 2 'found a recipe that learns no targets' \
    "$prony" train vae.net digits --labelled 40
expect labels_need_rows 2 'found 2000 labelled rows, expected at most the 1438 to learn from' \
    "$prony" train small_mlp.net digits --labelled 2000
expect labels_stay 2 'cannot be given with --resume' \
    "$prony" train digits_dbn digits --resume few.st --labelled 50
expect times_a_step 0 'correct' "$prony" bench gan --batch 8 --seconds 0.1

# Rows without a label, said or not asked for; labels that nobody looks at may be anything.
cut -d, -f1-64 a.csv >bare.csv
sed 's/$/,whatever/' a.csv >words.csv
expect needs_a_word_about_labels 2 'found 63 feature columns, expected 64.*--label none' \
    "$prony" train vae.net bare.csv --epochs 1
expect learns_without_labels 0 'test loss' "$prony" train vae.net bare.csv --label none --epochs 1 --out bare.st
expect predicts_without_labels 0 '20 rows' "$prony" predict vae.net bare.st bare.csv --out said.csv
expect passes_labels_over 0 '20 rows' "$prony" predict vae.net vae.st words.csv --out said.csv
sed 's/$/,7.5/' a.csv >numbers.csv
expect passes_numbers_over 0 '20 rows' "$prony" predict rbm.net rbm.st numbers.csv --out said.csv
expect known_labels_can_be_left_out 0 'test loss' "$prony" train gan ring:100 --label none --epochs 1
cat >four.csv <<'END'
1,2,3,4
2,3,4,5
3,4,5,7
END
expect targets_need_labels 2 'found no labels, expected some' "$prony" train small four.csv --label none
expect one_word_about_labels 2 'expected one of them' "$prony" train vae.net a.npy --label none --labels l.npy

# Networks that learnt together, one by one: the decoder of what the encoder gives is what both give.
expect encodes 0 '20 rows' "$prony" predict vae.net:encoder vae.st a.csv --out code.csv
same code_has_moments 8 "$(head -n 1 code.csv | tr , '\n' | wc -l | tr -d ' ')"
tail -n +2 code.csv | cut -d, -f1-4 >means.csv
expect decodes 0 '20 rows' "$prony" predict vae.net:decoder vae.st means.csv --label none --out apart.csv
expect goes_through_both 0 '20 rows' "$prony" predict vae.net vae.st a.csv --out together.csv
differ() { # the largest difference of two files of numbers
    paste -d, "$1" "$2" | awk -F, 'NR > 1 { for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2)
        if (d < 0) d = -d
        if (d > most) most = d } } END { print (most < 0.001 && NR > 1) ? "same" : "differ by " most }'
}
same apart_as_together same "$(differ apart.csv together.csv)"
"$prony" train gan ring:200 --epochs 2 --batch 64 --out gan.st >/dev/null
awk 'BEGIN { for (i = 0; i < 3; i++) { for (k = 0; k < 16; k++) printf "%s%g", k ? "," : "", i - k / 9
    print "" } }' >noise.csv
expect takes_my_noise 0 '3 rows' "$prony" predict gan:generator gan.st noise.csv --label none --out points.csv
same points_of_the_plane 'value1,value2' "$(head -n 1 points.csv)"
printf '0.1,2\n-3,0.5\n' >rows.csv
expect judges 0 '2 rows' "$prony" predict gan gan.st rows.csv --label none --out judged.csv
same a_chance 2 "$(tail -n +2 judged.csv | awk '$1 > 0 && $1 < 1' | wc -l | tr -d ' ')"
"$prony" predict gan:discriminator gan.st rows.csv --label none --out alone.csv >/dev/null
same judges_alone_too same "$(differ judged.csv alone.csv)"
expect no_other_part 2 "there is no network 'coder' in vae.net" "$prony" predict vae.net:coder vae.st a.csv
expect not_of_another_file 2 'found the weights of another network' "$prony" predict gan:generator vae.st a.csv
if "$prony" export vae.net:decoder vae.st --out decoder.onnx >/dev/null 2>&1; then # there is protobuf-c
    "$prony" export vae.net:encoder vae.st --out encoder.onnx >/dev/null
    "$prony" predict encoder.onnx a.csv --out onnx_code.csv >/dev/null
    same exports_the_encoder same "$(differ code.csv onnx_code.csv)"
    "$prony" predict decoder.onnx means.csv --label none --out onnx_apart.csv >/dev/null
    same exports_the_decoder same "$(differ apart.csv onnx_apart.csv)"
fi

# Chances lie between 0 and 1, also of rows beyond those of the training: far is as far as farther.
awk 'BEGIN { for (i = 1; i <= 2; i++) { for (k = 0; k < 64; k++) printf "%s%d", k ? "," : "", (k % 2 ? 1000 : -1000) * i
    print "" } }' >far.csv
two_alike() { tail -n +2 "$1" | uniq | wc -l | tr -d ' '; }
expect predicts_far_rows 0 '2 rows' "$prony" predict vae.net vae.st far.csv --label none --out said.csv
same far_rows_are_chances 1 "$(two_alike said.csv)"
expect encodes_far_rows 0 '2 rows' "$prony" predict vae.net:encoder vae.st far.csv --label none --out said.csv
same far_rows_are_chances_alone 1 "$(two_alike said.csv)"
if [ -f encoder.onnx ]; then
    "$prony" predict encoder.onnx far.csv --label none --out onnx_code.csv >/dev/null
    same exports_the_chances same "$(differ said.csv onnx_code.csv)"
fi
"$prony" train vae.net digits --recipe vae:condition=1 --epochs 1 --batch 64 --out told.st >/dev/null
{ seq -f c%g -s, 66; sed 's/$/,1,2/' a.csv; } >twice.csv
expect condition_needs_one_class 2 'found 2 label columns, expected one: vae.net learnt on a condition' \
    "$prony" predict vae.net told.st twice.csv --label c65..c66

# What contradicts itself, or asks for what there is not.
expect only_an_rbm_sweeps 2 'only an rbm generates by Gibbs' "$prony" generate vae.net vae.st --sweeps 10
expect no_best_epoch_of_rivals 2 'compares its two sides' "$prony" train gan ring:200 --validate 0.2
expect rivals_have_no_patience 2 'compares its two sides' "$prony" train gan ring:200 --patience 2
expect no_loss_for_an_rbm 2 'loss: found cross_entropy, expected none' "$prony" train rbm.net digits --recipe rbm --loss cross_entropy
expect no_loss_for_a_gan 2 'loss: found mse, expected none' "$prony" train gan ring:200 --loss mse
expect no_empty_recipe 2 'recipe: found an empty text' "$prony" train vae.net digits --recipe ''
expect says_what_steps_may_be 2 'steps is -1, expected a whole number from 1 to 1000' \
    "$prony" train rbm.net digits --recipe rbm:steps=-1
expect goes_no_way_back 2 'has run 2 epochs, expected at least as many' \
    "$prony" train vae.net digits --resume vae.st --epochs 1
expect width_is_said 2 'digits: found 64 feature columns, expected 784, the inputs of vae$' \
    "$prony" train vae digits
expect folder_is_said 1 'cannot write into its folder' "$prony" generate vae.net vae.st --out nowhere/a.csv
expect stage_of_the_epoch 0 'stage 2 of 4, epoch 10 of 20' "$prony" train digits_dbn digits --epochs 20 --batch 64

# What is read is not written over, by whatever name; a training that goes on is.
keeps() { # NAME FILE COMMAND…
    which=$1 kept=$2 before=$(cksum <"$2")
    shift 2
    expect "$which" 2 "$kept: found the file to write among the inputs" "$@"
    same "${which}_as_it_was" "$before" "$(cksum <"$kept")"
}
ln -s rows.csv link.csv
cp vae.st weights.csv
keeps train_keeps_network vae.net "$prony" train vae.net digits --epochs 1 --out ./vae.net
keeps train_keeps_data rows.csv "$prony" train gan rows.csv --label none --epochs 1 --out "$PWD/rows.csv"
keeps predict_keeps_data link.csv "$prony" predict gan gan.st rows.csv --label none --out link.csv
keeps predict_keeps_weights gan.st "$prony" predict gan gan.st ring:50 --out gan.st
keeps predict_keeps_part vae.net "$prony" predict vae.net:encoder vae.st a.csv --out vae.net
keeps generate_keeps_weights weights.csv "$prony" generate vae.net weights.csv --out weights.csv
keeps export_keeps_weights gan.st "$prony" export gan:generator gan.st --out gan.st
keeps profile_keeps_network vae.net "$prony" profile vae.net --trace vae.net
keeps bench_keeps_network vae.net "$prony" bench vae.net --out vae.net
echo 'bench small' >list.suite
keeps suite_keeps_itself list.suite "$prony" suite ./list.suite --out list.suite

# Names that prony knows are no files, even where a file has that name.
expect name_of_the_network 0 'saved to small' "$prony" train small iris --epochs 1 --out small
expect name_of_the_network_again 0 'saved to small' "$prony" train small iris --epochs 1 --out small
expect name_of_the_data 0 'written to iris' "$prony" predict small small iris --out iris
expect name_of_the_data_again 0 'written to iris' "$prony" predict small small iris --out iris
keeps predict_keeps_weights_of_that_name small "$prony" predict small small iris --out small
cp gan.st gan
expect name_of_a_part 0 'written to gan' "$prony" export gan:generator gan.st --out gan
rm small iris gan

# Refusals say where.
refuse() { # NAME TEXT LINES ARGUMENTS…: of prony, with the file refused.net
    which=$1 text=$2
    printf "$3" >refused.net
    shift 3
    expect "$which" 2 "$text" "$prony" "$@"
}
refuse no_tokens_for_a_vae 'refused.net:3:1: found an input of tokens, expected numbers: the recipe vae' \
    'recipe vae\nnetwork encoder\ninput 4 tokens=5\nembedding 2\nflatten\ndense 4\nnetwork decoder\ninput 2\ndense 4\n' \
    explain refused.net
refuse no_tokens_for_an_rbm 'refused.net:1:1: found an input of tokens' 'input 4 tokens=5\ndense 3\nsigmoid\n' \
    explain refused.net --recipe rbm
refuse no_classes_to_give_back 'refused.net:3:1: found the loss cross_entropy, expected mse or binary' \
    'input 64\ndense 64\nloss cross_entropy\n' train refused.net digits --recipe autoencoder
expect no_classes_by_flag 2 'loss: found cross_entropy, expected mse or binary' \
    "$prony" train vae.net digits --loss cross_entropy
refuse a_dbn_has_machines "refused.net:2:1: found relu as the first layer, expected 'dense UNITS'" \
    'input 64\nrelu\ndense 10\n' train refused.net digits --recipe dbn
refuse a_dbn_takes_numbers_in_a_row 'refused.net:1:1: found an input of 3 sizes, expected one' \
    'input 1x8x8\nflatten\ndense 10\n' train refused.net digits --recipe dbn
refuse an_rbm_has_one "refused.net:4:1: found other layers, expected those of an rbm" \
    'input 64\ndense 16\nsigmoid\ndense 10\n' train refused.net digits --recipe rbm
refuse a_part_has_layers "refused.net:5:1: there is no layer in the network 'decoder'" \
    'recipe vae\nnetwork encoder\ninput 4\ndense 4\nnetwork decoder\ninput 2\n' explain refused.net
refuse a_size_too_large "the input is '1000000000000', expected sizes of at most 1000000000" \
    'input 1000000000000\ndense 4\n' explain refused.net
machines=$(awk 'BEGIN { for (i = 0; i < 16; i++) printf "dense 4\\nsigmoid\\n" }')
refuse as_many_machines_as_stages 'refused.net:32:1: found machine 16 of a dbn, expected at most 15' \
    "input 64\n${machines}dense 10\n" train refused.net digits --recipe dbn:pretrain=1 --epochs 20
refuse explains_as_it_trains 'refused.net:32:1: found machine 16 of a dbn, expected at most 15' \
    "input 64\n${machines}dense 10\n" explain refused.net --recipe dbn
refuse work_of_an_update 'chains times steps is 1e+09, expected at most 1e+06' 'input 64\ndense 16\nsigmoid\n' \
    train refused.net digits --recipe rbm:chains=1000000,steps=1000
expect no_empty_setting 2 "recipe:1:12: found nothing behind ','" "$prony" train rbm.net digits --recipe rbm:steps=3,,
expect sweeps_by_tens 2 'found 9 sweeps, expected a multiple of 10' "$prony" generate rbm.net rbm.st --sweeps 9

# What is said is so.
"$prony" train digits_dbn digits --recipe dbn:pretrain=0 --epochs 1 --batch 64 >output
same no_stages_without_pretraining 0 "$(grep -c stage output)"
head -n 1 rows.csv >one.csv
expect no_row_for_a_test 0 '^no test: no row was kept for it$' "$prony" train gan one.csv --label none --epochs 1
"$prony" predict gan gan.st ring:20 >output
same no_more_rows 0 "$(grep -c more output)"

# Weights that are no numbers.
"$prony" train small_mlp.net digits --epochs 1 --out lost.st >/dev/null
bytes=$(wc -c <lost.st)
# behind the header: 650 weights, and how many steps were done
head -c 2600 /dev/zero | tr '\000' '\377' | dd of=lost.st bs=1 seek=$((bytes - 2604)) conv=notrunc 2>/dev/null
expect no_numbers 1 'found weights that are no numbers' "$prony" predict small_mlp.net lost.st a.csv
expect nothing_to_go_on_with 1 'lost.st: found weights that are no numbers.*from the start' \
    "$prony" train small_mlp.net digits --resume lost.st --epochs 2
printf '\000\000\200\177' | dd of=lost.st bs=1 seek=$((bytes - 2604)) conv=notrunc 2>/dev/null
head -c 2596 /dev/zero | dd of=lost.st bs=1 seek=$((bytes - 2600)) conv=notrunc 2>/dev/null
expect no_infinity 1 'found weights that are infinite' "$prony" predict small_mlp.net lost.st a.csv

# A limit of the system leaves nothing behind.
(ulimit -f 8 && "$prony" generate vae.net vae.st --count 1000 --out large.csv) >output 2>&1
same limit_is_said "$(printf '1 0\n')" "$? $(ls | grep -c large)"

# Ctrl-C while it samples: at once, whatever it has to do, and once is enough.
"$prony" generate rbm.net rbm.st --sweeps 1000000000 --out never.csv >output 2>&1 </dev/null &
process=$!
until grep -q '^SigCgt:.*[4-7c-f]...$' /proc/$process/status 2>/dev/null; do sleep 0.1; done
kill -TERM $process
wait $process
same stops_when_asked '130 0' "$? $(ls | grep -c never)"

# In the middle of a long step it says what it waits for, and a second signal ends it.
"$prony" train mlp:64-2000-2000-10 digits --batch 1438 --backend ref >output 2>&1 </dev/null &
process=$!
tries=0
until grep -q 'backend ref' output || [ $((tries += 1)) -gt 600 ]; do sleep 0.1; done
kill -TERM $process
tries=0
until grep -q 'stopping after this step' output || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; done
kill -TERM $process
wait $process
same says_what_it_waits_for '143 1' "$? $(grep -c 'again stops at once' output)"
exit $failures
