# What is learnt on a GPU is learnt as well as on the CPU, from the same weights (the same seed): iris, digits and,
# where it was fetched, MNIST, by each way that a GPU has to train. Skipped where there is none.

suite=gpu_train
. tests/shell/command.sh
if ! "$prony" machine | grep -q '^  GPU  '; then
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

# learns NAME LEAST APART ARGUMENTS…: on both units at least so well, and no further apart (tenths of a percent).
learns() {
    name=$1 least=$2 apart=$3
    shift 3
    cpu=$(accuracy cpu "$@")
    gpu=$(accuracy gpu "$@")
    [ "${cpu:-0}" -ge "$least" ] && [ "${gpu:-0}" -ge "$least" ] &&
        [ $((gpu - cpu)) -le "$apart" ] && [ $((cpu - gpu)) -le "$apart" ]
    report "$name" $? "the CPU: $(tail -n 3 "$folder/cpu")
the GPU: $(tail -n 3 "$folder/gpu")"
    echo "     $*: $cpu per mille on the CPU, $gpu on the GPU"
}

# One of iris's 30 held-out rows is 33 tenths; digits have 359, MNIST 10,000.
learns iris_by_one_warp 900 34 small iris --epochs 100 --batch 1
learns iris_by_a_team 900 34 small iris --epochs 300 --batch 10
learns iris_by_one_block 900 34 mlp:4-16-16-3 iris --epochs 100 --batch 32
learns digits_by_the_grid_of_few_samples 950 12 mlp:64-512-512-10 digits --epochs 5 --batch 3
learns digits_by_the_grid 950 12 mlp:64-512-512-10 digits --epochs 5 --batch 10
learns digits_op_by_op 950 12 mlp:64-32-10 digits --epochs 5 --batch 32
if [ -f "${XDG_DATA_HOME:-$HOME/.local/share}/prony/mnist/train-images-idx3-ubyte" ]; then
    learns mnist 950 4 mlp:784-128-10 mnist --epochs 2 --batch 64
    learns mnist_streamed 950 4 mlp:784-128-10 mnist --epochs 2 --batch 64 --memory 20
    learns mnist_by_convolution 970 6 lenet mnist --epochs 1 --batch 64
else
    echo "skip $suite.mnist: MNIST is not here; tools/setup mnist fetches it"
fi
exit $status
