# The same trainings by prony and by PyTorch: step by step (tests/pytorch/compare.py) and, of a vae, what
# is learnt in the end (tests/pytorch/vae.py). Debian's package is for Debian's Python, which need not be
# the first one on the path.

for python in python3 /usr/bin/python3; do
    if "$python" -c 'import torch' 2>/dev/null; then
        status=0
        "$python" tests/pytorch/compare.py "$PRONY_BUILD/libprony.so" || status=1
        "$python" tests/pytorch/vae.py "$PRONY_BUILD/prony" || status=1
        exit $status
    fi
done
echo "skip pytorch: no Python module torch (Debian: python3-torch)"
