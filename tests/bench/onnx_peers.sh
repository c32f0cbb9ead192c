# ONNX files on the bench: peers open the file itself, also one that prony cannot import.

suite=onnx_peers
. tests/shell/command.sh
PRONY_PEER_SEARCH=off # one of the settings is enough here
export PRONY_PEER_SEARCH

# bench ARGUMENTS…: records of a short bench of inference.
bench() {
    "$prony" bench "$@" --phase inference --seconds 0.05 --format json 2>&1
}

# right NAME COUNT ARGUMENTS…: so many configurations are measured and right.
right() {
    name=$1 count=$2
    shift 2
    output=$(bench "$@")
    [ "$(echo "$output" | grep -c '"verdict":"right"')" -eq "$count" ]
    report "$name" $? "$output"
}

# skipped NAME REASON ARGUMENTS…: exactly one configuration is skipped, for that reason.
skipped() {
    name=$1 reason=$2
    shift 2
    output=$(bench "$@")
    [ "$(echo "$output" | grep -c '"status":"skipped"')" -eq 1 ] &&
        echo "$output" | grep '"status":"skipped"' | grep -q "$reason"
    report "$name" $? "$output"
}

bench small --framework onnxruntime | grep -q '"verdict":"right"' ||
    { echo "skip onnx_peers: ONNX Runtime is not installed (tools/setup peers)"; exit 0; }

printf 'input 5x3\nlstm 4\ndense 2\nloss cross_entropy\n' >"$folder/steps.net"
"$prony" export "$folder/steps.net" --out "$folder/steps.onnx" >/dev/null
right opens_exported_files 1 "$folder/steps.onnx" --batch 3 --framework onnxruntime
python3 tests/onnx/write_files.py "$folder"
right opens_files_of_every_form 7 "$folder/tails.onnx" "$folder/fixed.onnx" "$folder/second.onnx" "$folder/inputs.onnx" \
    "$folder/tokens.onnx" "$folder/outputs.onnx:output=z" "$folder/open.onnx:width=7" --batch 4 --framework onnxruntime
skipped says_how_many_samples_a_file_computes 'computes 4 samples at a time' "$folder/four.onnx" \
    --batch 6 --framework onnxruntime

# What prony cannot import is the peer's alone: its row is timed, and says that it is unchecked.
output=$(bench "$folder/foreign.onnx" --batch 3 --framework prony,onnxruntime,numpy)
echo "$output" | grep '"framework":"prony"' | grep '"status":"skipped"' | grep -q "node 'the_mod' (Mod)" &&
    echo "$output" | grep '"framework":"numpy"' | grep '"status":"skipped"' | grep -q 'opens none itself' &&
    echo "$output" | grep '"framework":"onnxruntime"' | grep '"status":"ok"' |
        grep '"times_floor":null' | grep -q '"reason":"prony cannot import it: '
report times_what_prony_cannot_import $? "$output"
output=$(bench "$folder/whole.onnx" --batch 3 --framework onnxruntime)
echo "$output" | grep '"status":"ok"' | grep -q 'input x float32 3x6, at int64 3, by float32 scalar'
report makes_inputs_of_every_type $? "$output"
expect prony_alone_names_the_node 1 "node 'the_mod' (Mod)" \
    "$prony" bench "$folder/foreign.onnx" --phase inference --seconds 0.05
expect trains_nothing_that_it_cannot_import 0 "skipped: $folder/foreign.onnx: node 'the_mod'" \
    "$prony" bench "$folder/foreign.onnx" --phase training --framework onnxruntime --seconds 0.05
expect names_what_nobody_has 1 'com.example' \
    "$prony" bench "$folder/unknown.onnx" --phase inference --framework prony,onnxruntime --seconds 0.05
expect asks_for_open_sizes 2 '--shape width=N' \
    "$prony" bench "$folder/open.onnx" --phase inference --framework prony,onnxruntime --seconds 0.05

# PyTorch, by a graph of the file's nodes.
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    right builds_the_graph_in_pytorch 2 "$folder/fixed.onnx" "$folder/second.onnx" --batch 4 \
        --framework pytorch
    skipped pytorch_names_the_node "node 'the_foo' (Foo)" "$folder/whole.onnx" "$folder/unknown.onnx" \
        --framework pytorch
    echo "$output" | grep '"status":"ok"' | grep -q '"reason":"prony cannot import it: '
    report times_foreign_files_in_pytorch $? "$output"
    data=/usr/share/libonnx-testdata/data
    if [ -d $data ]; then
        output=$(/usr/bin/python3 tests/onnx/torch_nodes.py $data/node $data/pytorch-* 2>&1)
        report pytorch_passes_the_tests_of_onnx $? "$output"
    else
        echo "skip onnx_peers.pytorch_passes_the_tests_of_onnx: no libonnx-testdata"
    fi
else
    echo "skip onnx_peers.pytorch: not installed (tools/setup peers)"
fi

output=$(timeout 60 python3 tests/onnx/attack_reader.py "$folder"/*.onnx 2>&1)
report reads_hostile_files $? "$output"

exit $status
