#!/bin/sh
# prony quantise as a user runs it: a network in 8 bits, what it costs, the file it writes, and what it
# refuses or warns of.

suite=cli_quantise
. tests/shell/command.sh
cd "$folder" || exit 2

"$prony" train small iris --epochs 100 --out iris.safetensors >/dev/null 2>&1
"$prony" train mlp:64-16-10 digits --epochs 10 --batch 16 --optimiser adam --out digits.safetensors \
    >/dev/null 2>&1

# What it says, and the file.
expect says_what_is_lost 0 "accuracy" "$prony" quantise digits.safetensors digits --out d8.safetensors
holds noise_is_per_layer "$output" "dense1              int8"
lost=$(echo "$output" | sed -n 's/.*: \([0-9.]*\) % lost.*/\1/p')
awk -v lost="${lost:-0}" 'BEGIN { exit !(lost <= 0.3) }'
report digits_lose_little $? "$output"
said=$(echo "$output" | sed -n 's/.* \([0-9.]*\) % in int8.*/\1/p')
predicted=$("$prony" predict d8.safetensors digits | sed -n 's/^accuracy \([0-9.]*\) %$/\1/p')
awk -v a="$said" -v b="$predicted" 'BEGIN { exit !(a - b < 0.06 && b - a < 0.06) }'
report the_file_predicts_the_same $? "quantise said $said, predict $predicted"
expect the_network_may_be_named 0 "written to" \
    "$prony" quantise small iris.safetensors iris --out i8.safetensors
expect explain_shows_integers 0 "dense_int8" "$prony" explain i8.safetensors
expect explain_shows_tables 0 "sigmoid1.table" "$prony" explain i8.safetensors
expect plain_shifts 0 "written to" "$prony" quantise digits.safetensors digits --plain --out p8.safetensors
expect plain_has_7_bits 0 "high=127" "$prony" explain p8.safetensors
expect layers_are_kept 0 "dense1              fp32" \
    "$prony" quantise digits.safetensors digits --keep dense1 --out k8.safetensors
expect ranges_are_chosen 0 "accuracy" \
    "$prony" quantise digits.safetensors digits --ranges percentile --rows 64 --out r8.safetensors
# small has no softmax, which is in reals
ref=$("$prony" predict i8.safetensors iris --backend ref --out ref.csv)
simd=$("$prony" predict i8.safetensors iris --out usual.csv)
cmp ref.csv usual.csv >/dev/null 2>&1
report backends_give_the_same_bits $? "ref: $ref; usual: $simd"

# The bench holds every backend to the reference.
bench="--phase inference --seconds 0.1 --threads 1"
# shellcheck disable=SC2086
for network in i8.safetensors d8.safetensors small lenet; do
    says "bench_checks_${network%.*}" "correct" "$prony" bench $network --precision int8 --backend simd $bench
done
# shellcheck disable=SC2086
says a_file_of_8_bits_is_no_fp32 "expected --precision int8" "$prony" bench i8.safetensors $bench
says int8_does_not_train "int8 is for inference" "$prony" bench small --precision int8 --seconds 0.1
expect reals_are_no_integers 2 "prony quantise makes one" \
    "$prony" predict iris.safetensors iris --precision int8
expect explain_takes_no_reals 2 "prony quantise wrote" "$prony" explain small --precision int8

# A network that learnt with few bits: what it says of itself is what it is in integers.
"$prony" train mlp:64-16-10 digits --epochs 4 --batch 16 --optimiser adam --precision int8 --weight-bits 2 \
    --out two.safetensors >/dev/null 2>&1
output=$("$prony" quantise two.safetensors digits --out two8.safetensors 2>&1)
echo "$output" | sed -n 's/^accuracy  \([0-9.]*\) % in fp32, \([0-9.]*\) % in int8.*/\1 \2/p' |
    awk '$1 > 80 && $1 - $2 < 1 { found = 1 } END { exit !found }'
report it_learns_with_two_bits $? "$output"
expect it_goes_on_with_the_same_bits 2 "expected --precision int8 --weight-bits 2" \
    "$prony" train mlp:64-16-10 digits --resume two.safetensors --epochs 5
"$prony" train mlp:64-16-10 digits --resume two.safetensors --epochs 5 --precision int8 --weight-bits 2 \
    --out more.safetensors >/dev/null 2>&1
"$prony" train mlp:64-16-10 digits --epochs 5 --batch 16 --optimiser adam --precision int8 --weight-bits 2 \
    --out once.safetensors >/dev/null 2>&1
cmp more.safetensors once.safetensors >/dev/null 2>&1
report a_resumed_training_ends_the_same $? "more.safetensors and once.safetensors differ"
expect bits_need_int8 2 "expected --precision int8" "$prony" train small iris --weight-bits 4
expect three_bits_are_refused 2 "expected 8, 4 or 2" \
    "$prony" train small iris --precision int8 --weight-bits 3
expect other_recipes_are_refused 1 "expected feed_forward" \
    "$prony" train vae digits --precision int8 --epochs 1

# What it warns of.
{
    head -1 "$OLDPWD/datasets/iris.csv"
    grep setosa "$OLDPWD/datasets/iris.csv"
} >one.csv
says one_class_is_told "are of the class" \
    "$prony" quantise iris.safetensors one.csv --out o8.safetensors
head -1 "$OLDPWD/datasets/iris.csv" >none.csv
expect no_rows_are_told 2 "none.csv" "$prony" quantise iris.safetensors none.csv --out n8.safetensors
[ ! -e n8.safetensors ]
report nothing_is_written $? "$(ls)"

# Planted traps: found, and told. `plant FILE OUT CODE` changes a file's tensors t: name -> list.
plant() {
    python3 - "$1" "$2" "$3" <<'END'
import json, struct, sys
path, out, code = sys.argv[1:]
data = open(path, "rb").read()
length = int.from_bytes(data[:8], "little")
header, body = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
places = {name: about["data_offsets"] for name, about in header.items() if name != "__metadata__"}
floats = {name for name in places if header[name]["dtype"] == "F32"}
t = {name: list(struct.unpack(f"<{(places[name][1] - places[name][0]) // 4}f", body[slice(*places[name])]))
     for name in floats}
exec(code)
for name in floats:
    body[slice(*places[name])] = struct.pack(f"<{len(t[name])}f", *t[name])
open(out, "wb").write(data[: 8 + length] + bytes(body))
END
}
# channel 4 of what dense2 reads is 1,000 times as large, and its weights as much smaller: the same answers
plant digits.safetensors outlier.safetensors '
t["dense1.weight"] = [w * (1000 if i % 16 == 3 else 1) for i, w in enumerate(t["dense1.weight"])]
t["dense1.bias"] = [b * (1000 if i % 16 == 3 else 1) for i, b in enumerate(t["dense1.bias"])]
t["dense2.weight"] = [w / (1000 if i // 10 == 3 else 1) for i, w in enumerate(t["dense2.weight"])]'
expect an_outlier_is_told 0 "channel 4 of its input is" \
    "$prony" quantise outlier.safetensors digits --ranges minmax --out o8.safetensors
# sums that leave what a float holds
plant digits.safetensors infinite.safetensors '
t["dense1.weight"] = [w * 1e38 for w in t["dense1.weight"]]'
expect ranges_from_infinity_are_refused 1 "infinite or none" \
    "$prony" quantise infinite.safetensors digits --out n8.safetensors
plant digits.safetensors nan.safetensors 't["dense1.weight"][5] = float("nan")'
expect ranges_from_nan_are_refused 1 "no numbers" \
    "$prony" quantise nan.safetensors digits --out n8.safetensors
# every other row, which ranges do not come from, is 50 times as large
awk -F, -v OFS=, '{ if (NR % 2 == 0) for (i = 1; i < NF; i++) $i *= 50; print }' \
    "$OLDPWD/datasets/digits.csv" | head -1792 >wide.csv
expect narrow_ranges_are_told 0 "ranges are too narrow" \
    "$prony" quantise digits.safetensors wide.csv --rows 896 --out w8.safetensors
expect and_of_which_layer 0 "of its results beyond the range" \
    "$prony" quantise digits.safetensors wide.csv --rows 896 --out w8.safetensors
: >empty.csv
expect an_empty_set_is_told 2 "found nothing" \
    "$prony" quantise digits.safetensors empty.csv --out n8.safetensors
[ ! -e n8.safetensors ]
report traps_leave_no_file $? "$(ls)"

# What it refuses.
expect another_range 2 "expected mse, minmax or percentile" \
    "$prony" quantise iris.safetensors iris --ranges best --out x
expect another_width 2 "expected 8, 4 or 2" \
    "$prony" quantise iris.safetensors iris --weight-bits 3 --out x
expect no_such_layer 2 "no layer 'dense9'" \
    "$prony" quantise iris.safetensors iris --keep dense9 --out x
expect not_twice 2 "expected its fp32 form" "$prony" quantise i8.safetensors iris --out x
expect out_is_needed 2 "found no --out" "$prony" quantise iris.safetensors iris
expect not_over_the_weights 2 "iris.safetensors" \
    "$prony" quantise iris.safetensors iris --out iris.safetensors
expect no_weights 2 "prony quantise FILE DATA" "$prony" quantise small iris --out x
expect not_trained_on 2 "found a saved network" "$prony" train i8.safetensors iris
[ ! -e x ]
report refusals_write_nothing $? "$(ls)"

exit $status
