#!/bin/sh
# MNIST, the real one: lenet learns it in a few epochs on the fast backend; a small network learns it
# streamed to the same bytes as from memory; and what docs/boltzmann.md says of two recipes, after two epochs.
prony=$PRONY_BUILD/prony
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
status=0

if [ ! -f "${XDG_DATA_HOME:-$HOME/.local/share}/prony/mnist/train-images-idx3-ubyte" ]; then
    echo "skip slow_mnist.learns: MNIST is not here; tools/setup mnist fetches it"
    exit 0
fi
result() { # NAME TRUTH
    if [ "$2" -eq 0 ]; then
        echo "ok   slow_mnist.$1 ($(tail -n 1 output))"
    else
        cat output
        echo "FAIL slow_mnist.$1"
        status=1
    fi
}
# The accuracy that the test ended with, in tenths of a percent; 0 when it did not.
accuracy() { awk '/^test accuracy/ { print int($3 * 10 + 0.5); found = 1 } END { if (!found) print 0 }' output; }
train_small() { "$prony" train mlp:784-32-10 mnist --epochs 1 --batch 32 "$@" >output 2>&1; }

train_small --out loaded
[ $? -eq 0 ] && [ "$(accuracy)" -ge 940 ]
result learns $?
train_small --memory 20 --out streamed
[ $? -eq 0 ] && grep -q streamed output && cmp -s loaded streamed
result streamed_is_identical $?

if "$prony" explain lenet --backend simd >output 2>&1; then
    # 3 epochs of 1875 updates, the rate falling to 0 by then
    "$prony" train lenet mnist --backend simd --epochs 3 --batch 32 --schedule cosine:period=5625 >output 2>&1
    [ $? -eq 0 ] && [ "$(accuracy)" -ge 985 ]
    result lenet_learns $?
else
    echo "skip slow_mnist.lenet_learns: no fast backend: $(tail -n 1 output)"
fi

# An auto-encoder with a code of 32 is below the best linear one (examples/kinds/pca.py: 0.1773).
"$prony" train autoencoder mnist --epochs 2 --batch 64 >output 2>&1
awk '/^test loss/ { found = $3 < 0.1773 } END { exit !found }' output
result autoencoder_is_below_pca $?

# A Boltzmann machine's samples are of all kinds, as the small network above reads them.
"$prony" train rbm mnist --epochs 2 --batch 100 --schedule cosine:period=1200 --out rbm >output 2>&1 &&
    "$prony" generate rbm rbm --count 100 --out samples.csv >>output 2>&1 &&
    "$prony" predict mlp:784-32-10 loaded samples.csv --label none --out said.csv >>output 2>&1
tail -n +2 said.csv | cut -d, -f1 | sort | uniq -c | awk '{ printf "%d of %s, ", $1, $2 } END { print NR " digits" }' >>output
[ "$(tail -n +2 said.csv | cut -d, -f1 | sort -u | wc -l)" -ge 8 ]
result rbm_makes_many_digits $?
exit $status
