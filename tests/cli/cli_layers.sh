# prony profile --framework: each layer's time in several frameworks, side by side.

suite=cli_layers
. tests/shell/command.sh
PRONY_PEER_SEARCH=off # one of the settings is enough here
export PRONY_PEER_SEARCH

# layers NAME ARGUMENTS…: the object is sound, and the Python expression on stdin holds for it: `found`
# is the object, `group(NAME, PART)` gives {framework: ns} of a group. On a crowded machine a peer may be
# taken for one that hides its time: then it is asked again.
layers() {
    name=$1 tries=0
    shift
    while "$prony" profile "$@" --seconds 0.05 --json >"$folder/found.json" 2>"$folder/errors"
        grep -q 'times in a row' "$folder/found.json" && [ $((tries += 1)) -lt 4 ]; do :; done
    explanation=$(python3 tests/peers/layers.py "$folder/found.json" "$(cat)" 2>&1)
    report "$name" $? "$explanation $(head -c 2000 "$folder/errors" "$folder/found.json")"
}

expect helps 0 '--framework' "$prony" profile --help
expect knows_frameworks 2 'no framework "nump"' "$prony" profile small --framework prony,nump
expect writes_files_of_one 2 'they write the profile of prony alone' \
    "$prony" profile small --framework prony,numpy --trace "$folder/t.json"

cat >"$folder/mute" <<'PEER'
#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    do, answer = json.loads(line)["do"], {}
    if do == "check":
        answer = {"status": "unsupported", "reason": "it cannot say"}
    elif do == "run":
        answer = {"elapsed_ns": 1000 * json.loads(line)["iterations"]}
        import time; time.sleep(2e-6 * json.loads(line)["iterations"])
    elif do == "profile":
        answer = json.load(open(__file__ + ".json"))
    print(json.dumps({"status": "ok", **answer}), flush=True)
PEER
chmod 755 "$folder/mute"
# told NAME PART ANSWER: what is said of a peer with such a profile.
told() {
    echo "$3" >"$folder/mute.json"
    says "$1" "$2" "$prony" profile small --phase inference --framework "prony,$folder/mute" --seconds 0.05
}
told refuses_no_rows 'has no "rows"' '{}'
told refuses_rows_without_time 'has no "ns"' '{"rows": [{"name": "a", "covers": []}]}'
told refuses_infinite_times 'profile has no "ns"' '{"rows": [{"name": "a", "ns": -1, "covers": []}]}'
told refuses_unknown_parts 'has the part "sideways"' '{"rows": [{"part": "sideways", "ns": 1, "covers": []}]}'
told refuses_other_covers 'expected names' '{"rows": [{"name": "a", "ns": 1, "covers": [1]}]}'
told shows_layers_of_any_name 'dense9' '{"rows": [{"name": "a", "ns": 1, "covers": ["dense9"]}]}'
told joins_what_one_of_them_fuses 'dense1 + sigmoid1 + dense2 + 1 more' \
    '{"rows": [{"name": "a", "ns": 1, "covers": ["dense1", "dense2"]}]}'

if "$prony" bench lenet --phase inference --framework onnxruntime --seconds 0.05 2>&1 | grep -q "left out"; then
    echo "skip cli_layers.onnxruntime: not installed (tools/setup peers)"
else
    layers own_network_in_onnxruntime lenet --phase inference --batch 4 --framework prony,onnxruntime <<'PY'
all(set(group(name)) == {"prony", "onnxruntime"}
    for name in ["conv1 + relu1", "max_pool1", "conv2 + relu2", "dense1 + relu3", "dense3", "softmax"])
and sum(g["layers"] for g in found["layers"]) >= 11
PY
    "$prony" export lenet --out "$folder/lenet.onnx" >/dev/null
    layers onnx_file_in_onnxruntime "$folder/lenet.onnx" --batch 4 --framework prony,onnxruntime <<'PY'
all(set(group(name)) == {"prony", "onnxruntime"}
    for name in ["conv1 + relu1", "max_pool2 + flatten1", "dense2 + relu4", "dense3/1"])
and all(g["layer"] or g["name"] in ("samples", "results", "ReorderInput", "ReorderOutput") for g in found["layers"])
PY
    printf 'input 3x12x12\na = conv 16 3x3 pad=1 bias=0\nbatch_norm\nb = relu\nconv 16 3x3 pad=1\nc = batch_norm\nadd < b, c\nrelu\nglobal_average_pool\ndense 4\n' \
        >"$folder/block.net"
    "$prony" export "$folder/block.net" --out "$folder/block.onnx" >/dev/null
    layers finds_fused_blocks "$folder/block.onnx" --batch 2 --framework prony,onnxruntime <<'PY'
set(group("a + batch_norm1 + b")) == {"prony", "onnxruntime"}
and any(g["layers"] == 4 and g["name"].startswith("conv2 + c + add1") and all(f["ns"] for f in g["frameworks"]) for g in found["layers"])
PY
    python3 tests/onnx/write_files.py "$folder"
    layers files_that_prony_cannot_import "$folder/foreign.onnx" --batch 3 --framework prony,onnxruntime <<'PY'
set(group("h")) == {"onnxruntime"} and found["left_out"][0]["framework"] == "prony"
PY
fi
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    layers trains_in_pytorch lenet --batch 4 --framework prony,pytorch <<'PY'
all(set(group(name, "backward")) == {"prony", "pytorch"} for name in ["conv1", "relu1", "dense3", "loss"])
and set(group("conv1 + relu1")) == set(group("update", "update")) == {"prony", "pytorch"}
PY
    printf 'input 6\na = dense 8\nb = relu\ndense 8 < b\nc = sigmoid\nadd < b, c\ndense 3\nloss cross_entropy\n' \
        >"$folder/branch.net"
    layers branches_in_pytorch "$folder/branch.net" --batch 4 --framework pytorch,prony <<'PY'
all(set(group(name, "backward")) == {"prony", "pytorch"} for name in ["a", "dense2", "c", "dense3"])
and found["gaps"][0]["from"] == "pytorch"
PY
    "$prony" export lenet --out "$folder/lenet.onnx" >/dev/null
    layers onnx_file_in_pytorch "$folder/lenet.onnx" --batch 4 --framework prony,pytorch <<'PY'
set(group("conv2 + relu2")) == set(group("dense3/1")) == {"prony", "pytorch"}
PY
else
    echo "skip cli_layers.pytorch: not installed (tools/setup peers)"
fi
layers two_builds_of_prony lenet --batch 4 --framework "prony,$prony" <<PY
all(len(group(name, part)) == 2 for name, part in [("conv1 + relu1", "forward"), ("dense3", "backward"),
                                                     ("update", "update"), ("loss", "forward")])
PY
says names_peers_that_do_not_tell 'numpy: no layers: this peer does not tell' \
    "$prony" profile small --phase inference --framework prony,numpy --seconds 0.05
says says_how_each_was_watched 'prony: 200 steps watched apart' \
    "$prony" profile small --phase inference --framework prony,numpy --seconds 0.05
exit $status
