#!/bin/sh
# Operators of 8 bits and networks that prony quantised and exported, beside ONNX Runtime.

suite=quantised
. tests/shell/command.sh
root=$(pwd)

runtime=${XDG_DATA_HOME:-$HOME/.local/share}/prony/onnxruntime/node_modules
if [ ! -x "$PRONY_BUILD/tests/test_onnx" ]; then
    echo "skip $suite: built without ONNX"
    exit 0
fi
if [ ! -d "$runtime/onnxruntime-node" ]; then
    echo "skip $suite: no onnxruntime-node; tools/setup peers fetches it"
    exit 0
fi
cd "$folder" || exit 2

printf '%s\n' 'input 1x8x8' 'conv 8 3 pad=1' batch_norm relu 'a = max_pool 2' 'conv 8 3 pad=1' batch_norm \
    'add < batch_norm2, a' relu 'conv 16 3 groups=2' sigmoid 'average_pool 2' flatten 'dense 24' tanh \
    'dense 10' 'loss cross_entropy' >image.net
"$prony" train image.net digits --epochs 4 --optimiser adam --out image.safetensors >/dev/null 2>&1
"$prony" train mlp:64-32-10 digits --epochs 4 --optimiser adam --out row.safetensors >/dev/null 2>&1
set --
for made in 'image --ranges mse' 'image --plain' 'row --ranges minmax'; do
    file=$(echo "$made" | tr -d ' -')
    # shellcheck disable=SC2086
    "$prony" quantise "${made%% *}.safetensors" digits ${made#* } --out "$file.safetensors" >/dev/null 2>&1
    expect "${file}_is_exported" 0 "written to" "$prony" export "$file.safetensors" --out "$file.onnx"
    expect "${file}_is_in_integers" 0 "products" "$prony" explain "$file.onnx"
    "$prony" predict "$file.safetensors" "$root/datasets/digits.csv" --out before.csv >/dev/null 2>&1
    "$prony" predict "$file.onnx" "$root/datasets/digits.csv" --out behind.csv >/dev/null 2>&1
    changed=$(paste -d, before.csv behind.csv | awk -F, 'NR > 1 && $1 != $(NF / 2 + 1)' | wc -l)
    [ "$changed" -le 18 ] # of powers of two, many sums lie half-way between two levels
    report "${file}_answers_as_before" $? "$changed answers of 1,797 changed"
    set -- "$@" "$file.safetensors" "$file.onnx" "$root/datasets/digits.csv"
done

output=$(NODE_PATH=$runtime node "$root/tests/onnx/quantised.js" "$prony" "$folder" "$@" 2>&1)
found=$?

report onnxruntime_says_the_same $found "$output"
exit $status
