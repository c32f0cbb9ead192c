# ONNX beside others: 1,000 random networks there and back, on each backend; what ONNX Runtime says of
# files that prony wrote; what prony says of files that PyTorch wrote.

suite=slow_onnx
. tests/shell/command.sh

if [ ! -x "$PRONY_BUILD/tests/test_onnx" ]; then
    echo "skip $suite: built without ONNX"
    exit 0
fi

# Files are written with fsync, a thousand times: in memory, where there is such a folder.
models=$(mktemp -d /dev/shm/prony-onnx.XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$folder" "$models"' EXIT
output=$(PRONY_ONNX_KEEP=$models PRONY_ONNX_NETWORKS=1000 "$PRONY_BUILD/tests/test_onnx" \
    random_networks_come_back_the_same_ref random_networks_come_back_the_same_simd \
    random_networks_come_back_the_same_blas 2>&1)
report a_thousand_networks_come_back_the_same $? "$output"

runtime=${XDG_DATA_HOME:-$HOME/.local/share}/prony/onnxruntime/node_modules
if [ -d "$runtime/onnxruntime-node" ]; then
    set --
    for number in $(seq 0 99); do
        set -- "$@" "$models/random$number.onnx"
    done
    printf 'input 1x7x7\na = max_pool 2 ceil=1\nb = conv 1 1\nmax_unpool < b, a\n' >"$folder/unpool.net"
    for network in lenet lstm jet_tagger ad_autoencoder sensor_net resnet18 examples/transformer.net \
        "$folder/unpool.net"; do
        file=$folder/$(basename "$network" .net).onnx
        "$prony" export "$network" --out "$file" >/dev/null && set -- "$@" "$file"
    done
    output=$(NODE_PATH=$runtime node tests/onnx/onnxruntime.js "$prony" "$folder" "$@" 2>&1)
    report onnxruntime_says_the_same_of_$#_files $? "$output"
else
    echo "skip $suite.onnxruntime: not found; tools/setup peers fetches it"
fi

# near FILE FILE: the same numbers, a row a line.
near() {
    paste -d, "$1" "$2" | awk -F, '
        NF % 2 { exit 1 }
        { for (i = 1; i <= NF / 2; i++) {
            off = $i - $(i + NF / 2); size = $i < 0 ? -$i : $i
            if (off < 0) off = -off
            if (!(off <= 1e-4 * (size > 1 ? size : 1))) exit 1
        } }
        END { if (NR == 0) exit 1 }'
}

python=python3
"$python" -c 'import torch' 2>/dev/null || python=/usr/bin/python3
if "$python" -c 'import torch' 2>/dev/null; then
    names=$("$python" tests/pytorch/onnx.py "$folder" 2>"$folder/said")
    report pytorch_writes_its_networks $? "$(cat "$folder/said")"
    for name in $names; do
        said=$("$prony" predict "$folder/$name.onnx" "$folder/${name%_*}.csv" --out "$folder/rows" 2>&1)
        sed 1d "$folder/rows" >"$folder/found" && near "$folder/found" "$folder/${name%_*}.out"
        report "pytorch_$name" $? "$said"
        rm -f "$folder/rows"
    done
else
    echo "skip $suite.pytorch: no module torch (Debian: python3-torch)"
fi
exit $status
