# prony profile --framework on a GPU: prony and PyTorch layer by layer, and what ONNX Runtime says there.
# Skipped where there is no GPU, or no PyTorch. About a minute.

suite=gpu_layers
. tests/shell/command.sh
PRONY_PEER_SEARCH=off
export PRONY_PEER_SEARCH
if [ ! -e /dev/nvidiactl ] || ! python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))'; then
    echo "skip $suite: there is no GPU, or no PyTorch"
    exit 0
fi

# layers NAME EXPRESSION ARGUMENTS…: the object is sound, and the expression holds for it.
layers() {
    name=$1 expression=$2
    shift 2
    "$prony" profile "$@" --unit gpu --seconds 0.3 --json >"$folder/found.json" 2>"$folder/errors"
    explanation=$(python3 tests/peers/layers.py "$folder/found.json" "$expression" 2>&1)
    report "$name" $? "$explanation $(head -c 2000 "$folder/errors" "$folder/found.json")"
}

both='{"prony", "pytorch"}'
layers trains "all(set(group(n, 'backward')) == $both for n in ['conv1', 'dense3']) and
    set(group('conv1 + relu1')) == $both" lenet --batch 64 --framework prony,pytorch
layers infers "all(set(group(n)) == $both for n in ['conv1 + relu1', 'dense1 + relu3'])" \
    lenet --batch 64 --phase inference --framework prony,pytorch
layers adds_up "all(abs(s['outside_ns']) < 3 * s['step_ns'] for s in found['frameworks'])" \
    large --batch 256 --framework prony,pytorch
COLUMNS=110 "$prony" profile large --batch 256 --unit gpu --framework prony,pytorch --seconds 0.3
if python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("onnxruntime"))'; then
    says says_what_fell_back 'nodes fell back to the CPU' \
        "$prony" profile lenet --batch 64 --phase inference --unit gpu --framework prony,onnxruntime --seconds 0.3
fi
says advises 'tried: ' "$prony" advise lenet --unit gpu --batch 64 --seconds 0.2 --store "$folder/own.db"
"$prony" advise lenet --unit gpu --batch 64 --seconds 0.2 --prove --rounds 2 --store "$folder/own.db"
exit $status
