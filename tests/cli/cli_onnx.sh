# An ONNX file was trained elsewhere: every command that times or explains it predicts with it unless
# training is asked for.

suite=cli_onnx
. tests/shell/command.sh

if ! "$prony" export mlp:4-8-3 --out "$folder/model.onnx" >"$folder/said" 2>&1; then
    echo "skip $suite: $(cat "$folder/said")"
    exit 0
fi
printf '%s\n' "$folder/model.onnx --seconds 0.02" >"$folder/one.suite"
expect bench 0 inference "$prony" bench "$folder/model.onnx" --seconds 0.02 --store "$folder/store.db"
"$prony" bench "$folder/model.onnx" small --seconds 0.02 --out "$folder/mixed.jsonl" >/dev/null 2>&1
found=$(grep -o '"model":"[^"]*","phase":"[a-z]*"' "$folder/mixed.jsonl" | sed 's/.*model.onnx/onnx/' | tr '\n' ' ')
holds a_file_beside_a_network "$found" 'onnx","phase":"inference" '
holds a_network_beside_a_file "$found" '"model":"small","phase":"training"'
expect suite 0 inference "$prony" suite "$folder/one.suite"
expect profile 0 inference "$prony" profile "$folder/model.onnx" --seconds 0.05
expect explain 0 inference "$prony" explain "$folder/model.onnx"
expect answer 0 inference "$prony" answer "$folder/model.onnx" --minutes 0 --store "$folder/store.db"
expect training_can_be_asked_for 0 training "$prony" bench "$folder/model.onnx" --phase training --seconds 0.02
exit $status
