# The peers that ship: each is right for training and inference, or says what it lacks. With PEERS=all
# (`make slow TESTS=peers`) also each optimiser, and the search of settings over several peers.

prony=$PRONY_BUILD/prony
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
XDG_CACHE_HOME=$folder/cache
export XDG_CACHE_HOME
export COLUMNS=500 # so that a reason stands in one line
PRONY_PEER_SEARCH=off # one of the settings is enough here, unless it is said otherwise
export PRONY_PEER_SEARCH
status=0

# right NAME COUNT ARGUMENTS…: so many configurations are measured and right, or all are skipped.
right() {
    name=$1 count=$2
    shift 2
    output=$("$prony" bench "$@" --seconds 0.05 --format json 2>&1)
    if [ "$(echo "$output" | grep -c '"verdict":"right"')" -eq "$count" ]; then
        echo "ok   slow_peers.$name"
    elif echo "$output" | grep -q '"status":"skipped"'; then
        reason=$(echo "$output" | sed -n '/"status":"skipped"/s/.*"reason":"\([^"]*\)".*/\1/p' | head -n 1)
        echo "skip slow_peers.$name: $reason"
    else
        printf '%.2000s\nFAIL slow_peers.%s\n' "$output" "$name"
        status=1
    fi
}

printf 'input 7\ndense 11\nrelu\ndense 5\nloss cross_entropy\n' >"$folder/classes.net"
cat >"$folder/image.net" <<'NET'
input 3x12x12
a = conv 8 3x3 pad=1 bias=0
batch_norm
relu
b = conv 8 3x3 pad=1 groups=2
lrn 3
add < a, b
max_pool 3 stride=2 pad=1
average_pool 2 stride=1 pad=1 count_pad=0
p = global_average_pool
q = dense 4 < p
concat < p, q
softplus
dense 5
loss cross_entropy
NET

for peer in peers/*/; do
    peer=$(basename "$peer")
    phases=training,inference rows=8
    [ "$peer" != __pycache__ ] || continue
    [ "$peer" != onnxruntime ] || phases=inference rows=4
    networks="small $folder/classes.net"
    [ "$peer" != fann ] || networks=small rows=4
    right "$peer" $rows $networks --phase $phases --batch 1,3 --framework "$peer"
done
right images_in_pytorch 6 lenet "$folder/image.net" lstm --phase training,inference --batch 3 \
    --framework pytorch
right images_in_onnxruntime 3 lenet "$folder/image.net" lstm --phase inference --batch 3 \
    --framework onnxruntime
right recipes_predict_in_pytorch 3 autoencoder rbm dbn --phase inference --batch 3 --framework pytorch
[ "$PEERS" != all ] || right optimisers_in_pytorch 7 small --batch 3 --framework pytorch \
    --optimiser momentum,nesterov,adagrad,rmsprop,adam,adamw,rprop
right blas_by_name 4 small --phase training,inference --batch 3 --framework blas \
    --backend openblas,blis
PRONY_PEER_SEARCH=on
XDG_DATA_HOME=$folder/data # where searches are kept
export XDG_DATA_HOME
[ "$PEERS" != all ] || right settings_are_searched 3 small --batch 3 --framework pytorch,blas,onednn
right images_are_searched 1 lenet --batch 3 --framework pytorch
case $output in
*'"status":"skipped"'*) echo "skip slow_peers.channels_last_is_tried: no PyTorch" ;;
*'"settings":"images channels_last, '*) echo "ok   slow_peers.channels_last_is_tried" ;;
*) printf '%.2000s\nFAIL slow_peers.channels_last_is_tried\n' "$output" && status=1 ;;
esac
unset XDG_DATA_HOME

# The ten lines of docs/peers.md, as a user's own script.
sed -n '/^```python/,/^```/p' docs/peers.md | grep -v '^```' | sed "s|\"peers\"|\"$PWD/peers\"|" \
    >"$folder/mine.py"
chmod +x "$folder/mine.py"
right ten_lines_of_pytorch 2 small --batch 1,3 --framework "$folder/mine.py"
right ten_lines_against_ours 2 small --against "$folder/mine.py"

# … of another network than the one that is asked for: that is a mistake, and said.
output=$("$prony" bench "$folder/classes.net" --framework "$folder/mine.py" --seconds 0.05 2>&1)
found=$?
case $found.$output in
    *skipped*) echo "skip slow_peers.wrong_shapes_fail: $output" ;;
    1.*'failed: ValueError: dense1.weight takes a parameter of [11, 7], the module has [3, 4] here'*)
        echo "ok   slow_peers.wrong_shapes_fail" ;;
    *)
        printf 'status %s, %.1000s\nFAIL slow_peers.wrong_shapes_fail\n' "$found" "$output"
        status=1
        ;;
esac
exit $status
