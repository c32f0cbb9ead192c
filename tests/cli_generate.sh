#!/bin/sh
# prony generate as a user runs it, and recipes on the command line of the others: files it writes, and
# what it refuses.
prony=$PRONY_BUILD/prony
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
failures=0

# expect NAME STATUS TEXT COMMAND…: the command ends with that status and says the text.
expect() {
    name=$1 status=$2 text=$3
    shift 3
    "$@" >output 2>&1 </dev/null
    found=$?
    if [ $found -eq "$status" ] && grep -q -- "$text" output; then
        echo "ok   cli_generate.$name"
        return
    fi
    cat output
    echo "exit status $found, expected $status and \"$text\": $*"
    echo "FAIL cli_generate.$name"
    failures=1
}
# same NAME EXPECTED FOUND
same() {
    if [ "$2" = "$3" ]; then
        echo "ok   cli_generate.$1"
        return
    fi
    echo "found '$3', expected '$2'"
    echo "FAIL cli_generate.$1"
    failures=1
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
expect reads_its_npy 0 'more rows' "$prony" predict vae.net vae.st a.npy
expect trains_rbm 0 'test loss' "$prony" train rbm.net digits --recipe rbm:chains=5 --epochs 1 --batch 32 --out rbm.st
expect knows_its_recipe 0 '4 samples' "$prony" generate rbm.net rbm.st --sweeps 20 --count 4 --out r.pgm
expect condition_needs_classes 2 'learns on a condition' "$prony" train vae.net a.npy --recipe vae:condition=1
expect no_condition 2 'without a condition' "$prony" generate vae.net vae.st --class 3
expect no_picture 2 'expected HxW' "$prony" generate vae.net vae.st --shape 7x9 --out d.pgm
expect no_format 2 'expected .csv, .npy or .pgm' "$prony" generate vae.net vae.st --out d.jpeg
"$prony" train small iris --epochs 1 --out small.st >/dev/null
expect only_some_generate 2 'expected one that can generate' "$prony" generate small small.st
expect recipe_stays 2 'cannot be given with --resume' "$prony" train rbm.net digits --resume rbm.st --recipe rbm
expect explains_both 0 'd(generator.dense1.weight) = outer' "$prony" explain gan --phase training --no-fusion
same one_line 1 "$("$prony" explain gan --phase training --json | wc -l | tr -d ' ')"
expect two_programs 0 '"name":"gan: discriminator".*"name":"gan: generator"' \
    "$prony" explain gan --phase training --json
expect names_stages 0 'digits_dbn: stage 4 of 4' "$prony" explain digits_dbn --phase training
expect learns_from_few_labels 0 '1438 rows to learn from, 40 of them labelled' \
    "$prony" train digits_dbn digits --labelled 40 --epochs 8 --batch 16 --out few.st
expect goes_on_with_few 0 'resumed after epoch 8' \
    "$prony" train digits_dbn digits --resume few.st --epochs 9 --out few.st
expect stages_need_epochs 2 'found 6 epochs, expected more than the 6 that its first 3 stages take' \
    "$prony" train digits_dbn digits --epochs 6
expect labels_need_targets 2 'found a recipe that learns no targets' \
    "$prony" train vae.net digits --labelled 40
expect labels_need_rows 2 'found 2000 labelled rows, expected at most the 1438 to learn from' \
    "$prony" train small_mlp.net digits --labelled 2000
expect labels_stay 2 'cannot be given with --resume' \
    "$prony" train digits_dbn digits --resume few.st --labelled 50
expect times_a_step 0 'right' "$prony" bench gan --batch 8 --seconds 0.1
exit $failures
