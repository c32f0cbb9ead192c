# Peers as their users run them: a planted reference BLAS is noticed, marked, and concluded nothing
# from; the search of settings is kept, goes on where it ended, and no file leads it astray.

suite=fair_peers
. tests/shell/command.sh
command -v python3 >/dev/null || { echo "skip fair_peers: no python3"; exit 0; }
XDG_DATA_HOME=$folder/data
export XDG_DATA_HOME

# The search, in one process after another: `trials` counts what was really tried.
cat >"$folder/search.py" <<'PYTHON'
import glob, json, os, sys
sys.path.insert(0, "peers")
import prony_search
from prony_search import Search

class Refused(Exception):
    pass

SETTINGS = {"layout": ["a", "b"], "update": ["slow", "quick", "broken"]}
SECONDS = {"a": 3e-3, "b": 1e-3, "slow": 2e-3, "quick": 1e-3}

prony_search.measure = lambda step, seconds: step()  # by no clock: the machine may be busy
def find(most=60.0, key="net", settings=SETTINGS):
    trials = []
    def trial(choice):
        trials.append(choice)
        if choice["update"] == "broken":
            raise Refused()
        seconds = SECONDS[choice["layout"]] + SECONDS[choice["update"]]
        return 2, lambda: 2 * seconds
    search = Search({"work": key}, most, Refused)
    return search.run(settings, trial, 0.01), len(trials), search

BEST = {"layout": "b", "update": "quick"}
def check(name, held, found=None):
    print(("ok   " if held else f"{found}\nFAIL ") + "fair_peers." + name)
    return held

def file():
    return glob.glob(os.path.join(prony_search.folder(), "*.json"))[0]

held = []
best, trials, search = find()
held += [check("a_search_finds_the_best", best == BEST and trials == 4, (best, trials))]
tried = search.about()["search"]
held += [check("a_search_lists_what_was_tried", tried["finished"] and len(tried["tried"]) == 4
               and tried["tried"][3]["ms"] is None and tried["tried"][0]["ms"] > 4, tried)]
best, trials, search = find()
# Refused ones are tried again: another time there may be more memory; so are the best and the usual one.
held += [check("a_search_is_kept", best == BEST and trials == 3 and not search.handicaps(), trials)]
held += [check("another_work_is_searched", find(key="other")[1] == 4)]
os.unlink(file()), os.unlink(file())

# The first search was made on a busy machine, which slowed some of the trials down.
def busy(during):
    quiet = dict(SECONDS)
    SECONDS.update(during)
    find()
    SECONDS.update(quiet)
    best, trials, search = find()
    again = find()
    os.unlink(file())
    return best, trials, again[:2]
for name, during in (("for_the_usual", {"a": 9e-3, "slow": 9e-3}),
                     ("in_another_order", {"b": 4e-3, "quick": 5e-3})):
    found = busy(during)
    held += [check(f"a_busy_search_is_made_anew_{name}", found == (BEST, 6, (BEST, 3)), found)]
slower = {name: 3 * seconds for name, seconds in SECONDS.items()}
found = busy(slower)
held += [check("a_slower_machine_changes_no_order", found == (BEST, 3, (BEST, 3)), found)]

# The key has the fields that matter, and no others.
sys.argv[0] = "peers/numpy/run"
from prony_peer import Work
asked = {"phase": "inference", "batch": 3, "threads": 1, "backend": "", "unit": "cpu", "precision": "fp32"}
keys = [Work({**asked, **more}, {}).key({}) for more in ({}, {"novel": 1}, {"search_s": 2}, {"batch": 4})]
held += [check("a_key_has_what_matters", keys[0] == keys[1] == keys[2] != keys[3], keys)]

# Numbers beside an ONNX file that begin nowhere.
import onnx_graph
def entry(key, value):
    pair = bytes([10, len(key)]) + key.encode() + bytes([18, len(value)]) + value.encode()
    return bytes([13 << 3 | 2, len(pair)]) + pair
beside = os.path.basename(__file__)
wrong = []
for offset in ("9" * 30, "-" + "9" * 30, "-1", "x", "1e3"):
    data = bytes([8, 1, 16, 1, 112, 1]) + entry("location", beside) + entry("offset", offset)
    try:
        wrong.append((offset, onnx_graph.Tensor(data, os.path.dirname(__file__)).external(4)))
    except onnx_graph.Broken:
        pass
    except Exception as reason:
        wrong.append((offset, repr(reason)))
held += [check("an_offset_that_is_none_is_refused", not wrong, wrong)]

# Time ends it: it is said, and the next process goes on.
best, trials, search = find(most=-1)
held += [check("an_unfinished_search_is_said", trials == 1 and best["layout"] == "a"
               and "unfinished" in search.handicaps()[0], (trials, search.handicaps()))]
best, trials, search = find()
held += [check("an_unfinished_search_goes_on", best == BEST and trials == 4, (best, trials))]

usual = {**SETTINGS, "update": ["broken", "quick"]}
best, trials, search = find(-1, "refused", usual)
held += [check("there_is_time_for_one_that_runs", best == {"layout": "b", "update": "quick"} or
               best["update"] == "quick", (best, trials))]
os.unlink(max(glob.glob(os.path.join(prony_search.folder(), "*.json")), key=os.path.getmtime))

# A file that was damaged or made up.
with open(file()) as kept:
    right = json.load(kept)
def planted(content):
    with open(file(), "w") as kept:
        kept.write(content if isinstance(content, str) else json.dumps(content))
    best, trials, search = find()
    return best == BEST and trials == 4 and len(search.about()["search"]["tried"]) == 4
words = list(right["tried"])
bad = ["", "{", "[" * 100000, "null", "[1]", '{"key": 1}', "\x00" * 10, "x" * 100000,
       {**right, "key": {"work": "net"}}, {**right, "tried": []}, {**right, "tried": "slow"},
       {**right, "tried": {words[0]: -1}}, {**right, "tried": {words[0]: "1"}},
       {**right, "tried": {words[0]: True}}, {**right, "tried": {words[0]: [1e-9]}},
       {**right, "tried": {"layout c, update made-up": 1e-9}},
       json.dumps({**right, "tried": {words[0]: 1}}).replace(": 1}", ": NaN}")]
wrong = [content for content in bad if not planted(content)]
held += [check("a_bad_file_is_passed_over", not wrong, [str(w)[:200] for w in wrong])]
os.unlink(file())
os.rmdir(prony_search.folder())
os.symlink("/dev/null/nowhere", prony_search.folder())
held += [check("a_folder_that_cannot_be_written", find()[0] == BEST)]
os.environ["PRONY_PEER_SEARCH"] = "off"
best, trials, search = find()
held += [check("no_search_is_said", trials == 0 and "not searched" in search.handicaps()[0])]
sys.exit(not all(held))
PYTHON
python3 "$folder/search.py" || status=1
rm -rf "$XDG_DATA_HOME"

# A reference BLAS, planted before the one that NumPy finds.
compiler=$(command -v cc || command -v gcc || command -v clang)
[ -n "$compiler" ] || { echo "skip fair_peers.planted: no C compiler"; exit $status; }
mkdir "$folder/reference"
"$compiler" -O1 -shared -fPIC -Wl,-soname,libblas.so.3 tests/bench/naive_blas.c -o "$folder/reference/libblas.so.3" ||
    { echo "FAIL fair_peers.build"; exit 1; }
# bench FILE ARGUMENTS…: of NumPy beside prony, into the file and a store beside it.
bench() {
    file=$folder/$1
    shift
    "$prony" bench mlp:5-7-3 --phase inference --batch 3 --framework prony,numpy --seconds 0.1 \
        --out "$file.jsonl" --store "$file.db" "$@" 2>&1
}
output=$(bench fair)
case $output in
*skipped*) echo "skip fair_peers.planted: $output" | tr '\n' ' '; echo; exit $status ;;
*handicapped:*) echo "skip fair_peers.planted: this machine's NumPy is handicapped already"; exit $status ;;
esac
grep '"framework":"numpy"' "$folder/fair.jsonl" | grep -q '"blas":"'
report a_record_names_the_blas $? "$(cat "$folder/fair.jsonl")"
grep '"framework":"numpy"' "$folder/fair.jsonl" | grep -q '"tried":\[{"settings":"weights \[in\]\[out\]","ms":'
report a_record_lists_what_was_tried $? "$(cat "$folder/fair.jsonl")"
grep '"framework":"numpy"' "$folder/fair.jsonl" | grep -q '"tuning":"weights \['
report tuning_is_a_field_of_its_own $?
! grep '"framework":"numpy"' "$folder/fair.jsonl" | grep -q '"software":"[^"]*weights'
report software_has_no_tuning $?
# quiet FILE: a store of its records, as if nothing else had used the CPU: what is disturbed says nothing.
quiet() {
    sed 's/"\(steal\|other_load\)":[0-9][0-9.e+-]*/"\1":0/g' "$folder/$1.jsonl" >"$folder/$1.quiet.jsonl"
    "$prony" store add "$folder/$1.quiet.jsonl" --store "$folder/$1.quiet.db" >/dev/null 2>&1
    "$prony" answer mlp:5-7-3 --minutes 0 --phase inference --store "$folder/$1.quiet.db" 2>&1 | tr -s '\n ' ' '
}
holds both_are_in_an_answer "$(quiet fair)" "NumPy"

output=$(LD_LIBRARY_PATH=$folder/reference bench planted)
marked a_reference_blas_is_marked "$output" numpy 'handicapped: reference BLAS (netlib)'
grep -q '"handicap":"reference BLAS (netlib)".*"verdict":"right".*"blas":"reference (libblas.so.3)"' "$folder/planted.jsonl"
report a_reference_blas_is_recorded $? "$(cat "$folder/planted.jsonl")"
"$compiler" -O1 -shared -fPIC tests/bench/naive_blas.c -o "$folder/reference/before.so" &&
    output=$(LD_PRELOAD=$folder/reference/before.so bench preloaded)
marked a_preloaded_blas_is_the_one_asked "$output" numpy 'handicapped: reference BLAS (netlib)'
output=$(quiet planted)
holds answers_say_why_it_is_left_out "$output" "(Left out as handicapped: numpy: reference BLAS (netlib).)"
case $output in *NumPy*) false ;; esac
report no_answer_is_drawn_from_it $? "$output"
exit $status
