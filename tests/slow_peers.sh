# The peers that ship: each is right for training and inference, or says what it lacks.

prony=$PRONY_BUILD/prony
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
XDG_CACHE_HOME=$folder/cache
export XDG_CACHE_HOME
status=0

for peer in peers/*/; do
    peer=$(basename "$peer")
    [ "$peer" != __pycache__ ] || continue
    output=$("$prony" bench small --phase training,inference --batch 1,3 --framework "$peer" \
        --seconds 0.05 --format json 2>&1)
    right=$(echo "$output" | grep -c '"verdict":"right"')
    if [ "$right" -eq 4 ]; then
        echo "ok   slow_peers.$peer"
    elif echo "$output" | grep -q '"status":"skipped"'; then
        echo "skip slow_peers.$peer: $(echo "$output" | sed -n 's/.*"reason":"\([^"]*\)".*/\1/p' | head -1)"
    else
        printf '%.2000s\nFAIL slow_peers.%s\n' "$output" "$peer"
        status=1
    fi
done

# The ten lines of docs/peers.md, as a user's own script.
name=slow_peers.ten_lines_of_pytorch
sed -n '/^```python/,/^```/p' docs/peers.md | grep -v '^```' | sed "s|\"peers\"|\"$PWD/peers\"|" \
    >"$folder/mine.py"
chmod +x "$folder/mine.py"
output=$("$prony" bench small --batch 1,3 --framework "$folder/mine.py" --seconds 0.05 \
    --format json 2>&1)
if [ "$(echo "$output" | grep -c '"verdict":"right"')" -eq 2 ]; then
    echo "ok   $name"
elif echo "$output" | grep -q 'is not installed'; then
    echo "skip $name: PyTorch is not installed"
else
    printf '%.2000s\nFAIL %s\n' "$output" "$name"
    status=1
fi
exit $status
