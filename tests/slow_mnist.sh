#!/bin/sh
# MNIST, the real one: learnt, and streamed to the same bytes.
prony=$PRONY_BUILD/prony
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
status=0

if [ ! -f "${XDG_DATA_HOME:-$HOME/.local/share}/prony/mnist/train-images-idx3-ubyte" ]; then
    echo "skip slow_mnist.learns: MNIST is not here; tools/setup mnist fetches it"
    exit 0
fi
train() { "$prony" train mlp:784-32-10 mnist --epochs 1 --batch 32 "$@" >output 2>&1; }

if train --out loaded && grep -q '^test accuracy 9[4-9]' output; then
    echo "ok   slow_mnist.learns ($(tail -n 1 output))"
else
    cat output
    echo "FAIL slow_mnist.learns"
    status=1
fi
if train --memory 20 --out streamed && grep -q 'streamed' output && cmp -s loaded streamed; then
    echo "ok   slow_mnist.streamed_is_identical"
else
    cat output
    echo "FAIL slow_mnist.streamed_is_identical"
    status=1
fi
exit $status
