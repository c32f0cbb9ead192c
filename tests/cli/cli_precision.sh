#!/bin/sh
# prony bench --precision all and --accuracy: the sheet of what each type gains and costs.

suite=cli_precision
. tests/shell/command.sh
cd "$folder" || exit 2
quick="--seconds 0.05 --threads 1 --backend simd"

"$prony" train mlp:64-16-10 digits --epochs 6 --batch 16 --optimiser adam --out digits.safetensors \
    >/dev/null 2>&1
"$prony" quantise digits.safetensors digits --out d8.safetensors >/dev/null 2>&1

# shellcheck disable=SC2086
sheet=$("$prony" bench digits.safetensors --precision all $quick 2>&1)
holds every_type_has_a_row "$(echo "$sheet" | sed -n '/× fp32/,$p' | cut -d' ' -f1 | tr '\n' ' ')" "fp32 bf16 int8"
holds it_says_what_is_left_out "$sheet" "fp16 left out"
holds outputs_move "$sheet" "output error"
echo "$sheet" | sed -n '/× fp32/,$p' | grep -q '^int8 .* [0-9.]* % *[0-9.]* % .*correct'
report accuracy_comes_from_the_data_of_the_file $? "$sheet"
reasons=$(echo "$sheet" | grep -c 'is slower than fp32: [a-z]')
slower=$(echo "$sheet" | sed -n '/× fp32/,$p' | grep -cE '^(bf16|int8) .*  0\.[0-9]+ ')
[ "$reasons" = "$slower" ]
report every_slower_type_has_a_reason $? "$sheet"

# shellcheck disable=SC2086
line=$("$prony" bench digits.safetensors --precision int8 --accuracy digits --format json $quick 2>/dev/null)
holds records_have_what_is_lost "$line" '"accuracy_lost":'
# shellcheck disable=SC2086
line=$("$prony" bench d8.safetensors --phase inference --precision int8 --format json $quick 2>/dev/null)
holds a_file_of_8_bits_knows_its_fp32 "$line" '"accuracy_lost":'
# shellcheck disable=SC2086
line=$("$prony" bench small --precision int8 --phase inference --format json $quick 2>/dev/null)
case $line in *'"accuracy"'*) false ;; *) true ;; esac
report random_weights_have_no_accuracy $? "$line"

# shellcheck disable=SC2086
expect weights_are_needed 2 "has no trained weights" "$prony" bench small --accuracy iris $quick
# shellcheck disable=SC2086
expect inference_is_needed 2 "needs --phase inference" \
    "$prony" bench digits.safetensors --phase training --accuracy digits $quick
# shellcheck disable=SC2086
says other_data_is_told "accuracy not known" "$prony" bench digits.safetensors --accuracy iris $quick

exit $status
