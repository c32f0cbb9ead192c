#!/bin/sh
# Weights of 4 and of 2 bits on MNIST: a lenet that learnt with them, beside one that learnt in fp32 and was
# rounded afterwards.

suite=few_bits
. tests/shell/command.sh

if [ ! -f "${XDG_DATA_HOME:-$HOME/.local/share}/prony/mnist/train-images-idx3-ubyte" ]; then
    echo "skip $suite: MNIST is not here; tools/setup mnist fetches it"
    exit 0
fi

# in_int8 FILE BITS: its accuracy with weights of so many bits, in per cent.
in_int8() {
    "$prony" quantise "$1" mnist --weight-bits "$2" --out "$folder/small.safetensors" 2>/dev/null |
        sed -n 's/^accuracy .* in fp32, \([0-9.]*\) % in int8.*/\1/p'
}

"$prony" train lenet mnist --epochs 2 --batch 32 --optimiser adam --out "$folder/fp32.safetensors" >/dev/null 2>&1
fp32=$("$prony" predict "$folder/fp32.safetensors" mnist | sed -n 's/^accuracy \([0-9.]*\) %$/\1/p')
for bits in 4 2; do
    "$prony" train lenet mnist --epochs 2 --batch 32 --optimiser adam --precision int8 --weight-bits $bits \
        --out "$folder/bits.safetensors" >/dev/null 2>&1
    learnt=$(in_int8 "$folder/bits.safetensors" $bits)
    rounded=$(in_int8 "$folder/fp32.safetensors" $bits)
    said="fp32 $fp32 %, learnt with $bits bits $learnt %, rounded to them $rounded %"
    echo "    $said"
    most=0.5
    [ $bits = 4 ] || most=5
    awk -v a="${fp32:-0}" -v b="${learnt:-0}" -v most=$most 'BEGIN { exit !(a > 95 && a - b <= most) }'
    report "loses_at_most_${most}_per_cent_with_${bits}_bits" $? "$said"
    [ $bits = 4 ] && continue
    awk -v a="${learnt:-0}" -v b="${rounded:-100}" 'BEGIN { exit !(a > b + 5) }'
    report learning_beats_rounding $? "$said"
done
exit $status
