# What may not be folded: random networks of PyTorch as ONNX files, predicted and trained by prony and by
# PyTorch (tests/pytorch/graphs.py); trained networks of tokens, as ONNX Runtime and prony read them.
# tests/long/graphs.sh has more of the first. GRAPHS='FIRST COUNT' says which.

suite=slow_graphs
. tests/shell/command.sh

if [ ! -x "$PRONY_BUILD/tests/test_onnx" ]; then
    echo "skip $suite: built without ONNX"
    exit 0
fi

for python in python3 /usr/bin/python3 ''; do
    [ "$python" ] && "$python" -c 'import torch' 2>/dev/null && break
done
if [ "$python" ]; then
    # shellcheck disable=SC2086 # two numbers
    output=$("$python" tests/pytorch/graphs.py "$PRONY_BUILD/libprony.so" ${GRAPHS:-0 60} 2>&1)
    report graphs_are_as_in_pytorch $? "$output"
    [ "${GRAPHS:-}" ] && echo "$output" | tail -1
else
    echo "skip $suite.pytorch: no module torch (Debian: python3-torch)"
fi

# tokens NAME LABELS LINE…: trains that network of 6 tokens out of 8 and exports it; adds the file to $files.
files=
tokens() {
    name=$1 labels=$2
    shift 2
    { echo 'input 6 tokens=8' && printf '%s\n' "$@"; } >"$folder/$name.net"
    awk -v labels="$labels" 'BEGIN {
        for (i = 1; i <= 6; i++) printf "t%d,", i
        for (i = 1; i <= labels; i++) printf "l%d%s", i, i < labels ? "," : "\n"
        for (row = 0; row < 40; row++) {
            for (i = 1; i <= 6; i++) printf "%d,", (row * 3 + i * i) % 8
            for (i = 1; i <= labels; i++) printf "%s%s", (row + i) % 3 ? "b" : "a", i < labels ? "," : "\n"
        }
    }' >"$folder/$name.csv"
    names=l1$([ "$labels" -gt 1 ] && echo "..l$labels")
    said=$("$prony" train "$folder/$name.net" "$folder/$name.csv" --label "$names" --epochs 3 \
        --out "$folder/$name.safetensors" 2>&1 &&
        "$prony" export "$folder/$name.net" "$folder/$name.safetensors" --out "$folder/$name.onnx" 2>&1 &&
        "$prony" predict "$folder/$name.net" "$folder/$name.safetensors" "$folder/$name.csv" \
            --label "$names" --out "$folder/$name.before" 2>&1 &&
        "$prony" predict "$folder/$name.onnx" "$folder/$name.csv" --label "$names" \
            --out "$folder/$name.after" 2>&1 &&
        paste -d, "$folder/$name.before" "$folder/$name.after" | awk -F, '
            { for (i = 1; i <= NF / 2; i++) {
                off = $i - $(i + NF / 2); same = $i == $(i + NF / 2) || (off != 0 && off * off < 1e-8)
                if (!same) { print "found " $(i + NF / 2) ", expected " $i; exit 1 }
            } }
            END { if (NR != 41) exit 1 }')
    report "${name}_of_tokens_comes_back" $? "$said"
    files="$files $folder/$name.onnx"
}
tokens dense 1 'embedding 4' flatten 'dense 2'
tokens lstm 1 'embedding 4' 'lstm 5 output=last' 'dense 2'
tokens transformer 6 'embedding 4' 'x = position' 'n = layer_norm' 'matmul transpose=second scale=0.5 < n, n' \
    's = softmax' 'h = matmul < s, n' 'add < h, x' 'dense 8' gelu 'dense 2'

runtime=${XDG_DATA_HOME:-$HOME/.local/share}/prony/onnxruntime/node_modules
if [ -d "$runtime/onnxruntime-node" ]; then
    # shellcheck disable=SC2086 # a list
    output=$(NODE_PATH=$runtime node tests/onnx/onnxruntime.js "$prony" "$folder" $files 2>&1)
    report onnxruntime_says_the_same_of_trained_tokens $? "$output"
else
    echo "skip $suite.onnxruntime: not found; tools/setup peers fetches it"
fi
exit $status
