# The same trainings by prony and by PyTorch: tests/pytorch/compare.py. Debian's package is for
# Debian's Python, which need not be the first one on the path.

for python in python3 /usr/bin/python3; do
    if "$python" -c 'import torch' 2>/dev/null; then
        exec "$python" tests/pytorch/compare.py "$PRONY_BUILD/libprony.so"
    fi
done
echo "skip pytorch: no Python module torch (Debian: python3-torch)"
