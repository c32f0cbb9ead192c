# Levers that come by PYTHONPATH: they change what a program of PyTorch leaves open, and nothing else; the
# program's own sitecustomize is still imported.

suite=levers
. tests/shell/command.sh

mkdir "$folder/own"
echo 'print("its own")' >"$folder/own/sitecustomize.py"
with() { # LEVERS COMMAND…
    names=$1
    shift
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=src/advise/levers:$folder/own PRONY_LEVERS=$names "$@"
}
holds leaves_other_programs_alone "$(with workers,pin,fused python3 -c 'print("here")')" 'its own
here'
says lists_those_that_must_be_named 'lever tf32 (only where --lever names it)' "$prony" advise --rules
expect knows_all_by_name 2 'did you mean workers' "$prony" advise --prove --lever worker -- true

python=
for one in python3 /usr/bin/python3; do
    "$one" -c 'import torch' 2>/dev/null && python=$one && break
done
if [ -z "$python" ]; then
    echo "skip $suite.changes_defaults: there is no PyTorch"
    exit $status
fi
cat >"$folder/loaders.py" <<'END'
import torch
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


many = list(range(64))
print("workers", DataLoader(many).num_workers > 0, DataLoader(many, num_workers=1).num_workers,
      DataLoader(Stream()).num_workers)
print("pinned", DataLoader(many).pin_memory, DataLoader(many, pin_memory=False).pin_memory)
print("fused", torch.optim.Adam([torch.nn.Parameter(torch.ones(3))]).defaults.get("fused"))
print(sum(1 for batch in DataLoader(many, 8)), "batches")
END
found=$(with workers,pin,fused "$python" "$folder/loaders.py" 2>/dev/null)
holds gives_workers "$found" 'workers True 1 0'
holds pins "$found" 'pinned True False'
holds loads_all "$found" '8 batches'
case $found in *'fused True'*) report fuses_nothing_on_the_cpu 1 "$found" ;; *) report fuses_nothing_on_the_cpu 0 ;; esac
exit $status
