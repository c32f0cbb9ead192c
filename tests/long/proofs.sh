# prony advise --prove: what is found is shown by runs in turns, without an edit of the program, and
# the store keeps it.

suite=proofs
. tests/shell/command.sh

cc -O1 -g0 -pthread -o "$folder/pools" tests/watch/pools.c || exit 1
"$prony" advise --rate 400 --prove --store "$folder/store.db" -- "$folder/pools" >/dev/null 2>"$folder/report"
found=$(cat "$folder/report")
echo "$found" | tail -n 1
holds finds_threads_that_spin "$found" 'R10'
holds chooses_a_lever "$found" 'OPENBLAS_NUM_THREADS=1'
holds proves_it "$found" '· proved'
expect keeps_the_proof 0 'proofs: 1, faster in 1' "$prony" advise --rules --store "$folder/store.db"
expect finds_nothing_wrong_with_the_store 0 '' "$prony" store check --store "$folder/store.db"

# Two pools of threads on two cores: OpenMP's of PyTorch, and OpenBLAS's.
python=/usr/bin/python3
if "$python" -c 'import torch' 2>/dev/null; then
    OPENBLAS_NUM_THREADS=2 "$prony" advise --rate 200 --prove --store "$folder/store.db" -- \
        "$python" tests/watch/mlp.py 2 30 256 1024 >/dev/null 2>"$folder/report"
    found=$(cat "$folder/report")
    echo "$found" | tail -n 1
    holds finds_two_pools "$found" 'R10'
    holds proves_two_pools "$found" '· proved'

    # Batches that are made in pure Python: its line, and no imports (Debian's Python is one program).
    OPENBLAS_NUM_THREADS=1 "$prony" advise --once --rate 200 -- "$python" tests/watch/mlp.py 1 2500 512 32 \
        >/dev/null 2>"$folder/report"
    found=$(cat "$folder/report")
    echo "$found" | sed -n 4,5p
    holds finds_python_itself_first "$found" '1  R11 Python itself'
    holds names_its_line "$found" 'tests/watch/mlp.py:20'
    holds leaves_imports_out "$found" 'of its start-up'
else
    echo "skip proofs.finds_two_pools: no PyTorch (Debian: python3-torch)"
fi

# Nothing is promised where nothing is to gain.
cc -O1 -g0 -o "$folder/third" tests/watch/third.c
expect is_silent_where_nothing_is_to_gain 3 'nothing worth more than 5 %' \
    "$prony" advise -- "$folder/third" 1500

exit $status
