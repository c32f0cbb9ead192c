# ONNX files of others, in prony, ONNX Runtime and PyTorch: each is timed, or says why not. The files are
# those of the folder $PRONY_ONNX_FILES; its file `sizes` has a line "FILE.onnx height=224,width=224" for
# each that leaves sizes open.

suite=onnx_files
. tests/shell/command.sh
PRONY_PEER_SEARCH=off
export PRONY_PEER_SEARCH
[ -d "$PRONY_ONNX_FILES" ] || { echo "skip onnx_files: PRONY_ONNX_FILES is no folder of ONNX files"; exit 0; }

# row FILE RECORDS: what became of the file in each framework; ends with 0 if ONNX Runtime timed it.
row() {
    python3 - "$1" "$2" <<'PYTHON'
import json, sys

found, timed = {}, False
for line in open(sys.argv[2], errors="replace"):
    if not line.startswith("{"):
        found.setdefault("prony", line.strip())
        continue
    record = json.loads(line)
    if record["kind"] != "result":
        continue
    name, status = record["point"]["framework"], record["status"]
    if status == "ok":
        result = record["result"]
        check = "right" if result["check"]["verdict"] == "right" else "unchecked"
        found[name] = f"{result['time_ns']['median'] / 1e6:.3g} ms, {check}"
        timed = timed or name == "onnxruntime"
    else:
        file = record["point"]["model"].split(".onnx")[0] + ".onnx: "
        found[name] = f"{status}: {record['reason']}".replace(file, "")
row = [found.get(name, "-")[:150] for name in ("prony", "onnxruntime", "pytorch")]
print(" | ".join(sys.argv[1:2] + row))
sys.exit(not timed)
PYTHON
}

for file in "$PRONY_ONNX_FILES"/*.onnx; do
    name=$(basename "$file")
    sizes=$(sed -n "s/^$name //p" "$PRONY_ONNX_FILES/sizes" 2>/dev/null | head -n 1)
    "$prony" bench "$file${sizes:+:$sizes}" --phase inference --batch 1 --framework prony,onnxruntime,pytorch \
        --seconds 0.1 --format json >"$folder/records" 2>&1
    said=$(row "$name" "$folder/records")
    report "$name" $? "$said"
    echo "$said" >>"$folder/table"
done
cat "$folder/table"
exit $status
