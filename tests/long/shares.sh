# How right the shares of `prony profile -- COMMAND` are, with both cores kept busy by others: a third
# of the time is a third, within 3 points of 1,000 samples or more; samples of a PyTorch program have
# a line and an op or function; what it costs.

suite=shares
. tests/shell/command.sh

python=/usr/bin/python3
cc -O1 -g0 -o "$folder/third" tests/watch/third.c || exit 1
cores=$(nproc)
busy=
for i in $(seq "$cores"); do
    sh -c 'while :; do :; done' &
    busy="$busy $!"
done
stop_busy() {
    for process in $busy; do kill "$process" 2>/dev/null; done
    rm -rf "$folder"
}
trap stop_busy EXIT

# profile NAME COMMAND…
profile() {
    name=$1
    shift
    "$prony" profile --once --json -- "$@" >"$folder/$name.json" 2>/dev/null
}
profile c "$folder/third" 3000
profile python "$python" tests/watch/third.py 45
"$python" -c 'import torch' 2>/dev/null && profile torch "$python" tests/watch/mlp.py 1 800

"$python" - "$folder" <<'PYTHON'
import json, os, sys
folder, failed = sys.argv[1], False

def check(name, held, text):
    global failed
    print(("ok   " if held else text + "\nFAIL ") + "shares." + name)
    failed = failed or not held

def inclusive(nodes, name):
    return sum(row["share"] for row in nodes if row["name"] == name)

def cost(profile):
    watched = profile["watched"]
    return profile["sampling_ns"] / (watched["user_ns"] + watched["system_ns"])

def third(name, profile, share):
    print("shares: %s: %d samples, batch has %.1f %%, sampling took %.2f %% of its CPU time" %
          (name, profile["samples"], 100 * share, 100 * cost(profile)))
    check(name + "_is_a_third", profile["samples"] >= 1000 and abs(share - 1 / 3) <= 0.03,
          "%d samples, %.3f" % (profile["samples"], share))
    check(name + "_costs_little", cost(profile) <= 0.02, "%.4f" % cost(profile))

c = json.load(open(folder + "/c.json"))
third("c", c, inclusive(c["functions"], "batch"))
python = json.load(open(folder + "/python.json"))
both = inclusive(python["functions"], "batch") + inclusive(python["functions"], "step")
third("python", python, inclusive(python["functions"], "batch") / both)
check("python_is_not_torn", python["torn"] <= 0.01 * python["of_python"], str(python["torn"]))
if os.path.exists(folder + "/torch.json"):
    torch = json.load(open(folder + "/torch.json"))
    named = torch["with_both"] / torch["of_python"]
    print("shares: torch: %d samples, %.1f %% of Python's threads have a line and a name, %.2f %% "
          "torn, sampling took %.2f %% of its CPU time" %
          (torch["samples"], 100 * named, 100 * torch["torn"] / torch["of_python"], 100 * cost(torch)))
    check("torch_is_named", torch["of_python"] >= 1000 and named >= 0.9, str(named))
    check("torch_is_not_torn", torch["torn"] <= 0.01 * torch["of_python"], str(torch["torn"]))
    check("torch_has_ops", any(row["name"].startswith("aten::") for row in torch["names"]), "no op")
    check("torch_costs_little", cost(torch) <= 0.02, "%.4f" % cost(torch))
else:
    print("skip shares.torch_is_named: no PyTorch (Debian: python3-torch)")
sys.exit(failed)
PYTHON
[ $? -eq 0 ] || status=1
exit $status
