# What is learnt on a GPU is learnt as well as on the CPU, from the same weights (the same seed): iris, digits and,
# where it was fetched, MNIST, by each way that a GPU has to train. Skipped where there is none.

suite=gpu_train
. tests/shell/command.sh
if [ ! -e /dev/nvidiactl ]; then
    echo "skip $suite: there is no GPU"
    exit 0
fi

# accuracy UNIT ARGUMENTS…: on held-out rows, in tenths of a percent; nothing where it did not train.
accuracy() {
    unit=$1
    shift
    "$prony" train "$@" --unit "$unit" --seed 1 2>&1 | tee "$folder/$unit" |
        sed -n 's/^test accuracy \([0-9]*\)\.\([0-9]\) %$/\1\2/p'
}

# learns NAME WAY LEAST APART NETWORK DATA EPOCHS BATCH …: on both units at least so well, and no further apart (tenths
# of a percent); WAY is what explain says of the steps.
learns() {
    name=$1 way=$2 least=$3 apart=$4 network=$5 data=$6 epochs=$7 batch=$8
    shift 8
    loss=cross_entropy
    [ "$network" = small ] && loss=mse # one output
    explained=$("$prony" explain "$network" --phase training --batch "$batch" --loss $loss --unit gpu 2>&1)
    cpu=$(accuracy cpu "$network" "$data" --epochs "$epochs" --batch "$batch" "$@")
    gpu=$(accuracy gpu "$network" "$data" --epochs "$epochs" --batch "$batch" "$@")
    printf '%s\n' "$explained" | grep -q -e "$way" && [ "${cpu:-0}" -ge "$least" ] && [ "${gpu:-0}" -ge "$least" ] &&
        [ $((gpu - cpu)) -le "$apart" ] && [ $((cpu - gpu)) -le "$apart" ]
    report "$name" $? "not by $way: $explained
or: the CPU: $(tail -n 3 "$folder/cpu")
the GPU: $(tail -n 3 "$folder/gpu")"
    echo "     $network, $data, $epochs epochs, batch $batch: $cpu per mille on the CPU, $gpu on the GPU"
}

# One of iris's 30 held-out rows is 33 tenths; digits have 359, MNIST 10,000.
learns iris_by_one_warp stack_warp 900 34 small iris 100 1
learns iris_by_a_team stack_four_warps 900 34 small iris 300 10
learns iris_by_one_block stack_block 900 34 mlp:4-16-16-3 iris 100 32
learns iris_by_many_blocks stack_replicas 900 34 mlp:4-8-3 iris 300 100
learns digits_by_the_grid stack_grid 950 12 mlp:64-512-512-10 digits 5 10
learns iris_by_the_grid stack_grid 900 34 mlp:4-300-300-3 iris 20 3
learns digits_op_by_op 'op by op' 950 12 mlp:64-32-10 digits 5 32
learns digits_by_two_workers 'op by op' 950 12 mlp:64-32-10 digits 5 32 --workers 2
if [ -f "${XDG_DATA_HOME:-$HOME/.local/share}/prony/mnist/train-images-idx3-ubyte" ]; then
    learns mnist 'op by op' 950 4 mlp:784-128-10 mnist 2 64
    learns mnist_streamed 'op by op' 950 4 mlp:784-128-10 mnist 2 64 --memory 20
    learns mnist_by_convolution 'op by op' 970 6 lenet mnist 1 64
else
    echo "skip $suite.mnist: MNIST is not here; tools/setup mnist fetches it"
fi
exit $status
