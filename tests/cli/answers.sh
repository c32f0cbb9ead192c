# What `prony answer` says: the findings of a machine, the same in the terminal, as JSON and from the guide;
# no line wider than the screen; other frameworks measured, and a reason where one is left out.

suite=answers
. tests/shell/command.sh

"$prony" store create --store "$folder/store.db" >/dev/null 2>&1
store="--store $folder/store.db"
text=$(COLUMNS=80 "$prony" answer $store)
holds names_the_machine "$text" "Measured on "
holds numbers_its_findings "$text" "  1  "
"$prony" answer $store --format json >"$folder/terminal.json"

# sentences FILE: of an overview as JSON, one a line.
sentences() {
    grep -o '"sentence":"\([^"\\]\|\\.\)*"' "$1" | sed 's/^"sentence":"//; s/"$//'
}
[ "$(sentences "$folder/terminal.json" | wc -l)" -ge 3 ] && [ "$(sentences "$folder/terminal.json" | wc -l)" -le 6 ]
report finds_three_to_six $? "found $(cat "$folder/terminal.json")"
flat=$(printf '%s' "$text" | tr -s '\n ' ' ')
sentences "$folder/terminal.json" >"$folder/sentences"
while read -r sentence; do
    case $flat in *"$sentence"*) ;; *) echo "$sentence" ;; esac
done <"$folder/sentences" >"$folder/missing"
[ ! -s "$folder/missing" ]
report text_and_json_are_the_same $? "not in the text: $(cat "$folder/missing")"

# wide COLUMNS COMMAND…: its lines that are wider.
wide() {
    columns=$1
    shift
    COLUMNS=$columns "$@" >"$folder/wide" 2>&1
    [ "$(LC_ALL=C.UTF-8 wc -L <"$folder/wide")" -le "$columns" ] || cat "$folder/wide"
}
for columns in 80 120; do
    found=$(wide $columns "$prony" answer $store; for network in large small resnet50; do
        wide $columns "$prony" answer $network --minutes 0 $store
        wide $columns "$prony" answer $network --minutes 0 --phase inference $store
    done)
    [ -z "$found" ]
    report "fits_$columns" $? "wider: $found"
done

# A command that goes on after a backslash is the one that JSON has.
COLUMNS=80 "$prony" answer large --minutes 0 --unit cpu $store >"$folder/answer"
sed -n '/^try/,/[^\\]$/p' "$folder/answer" | sed 's/^try//; s/\\$//' | tr -s '\n ' ' ' | sed 's/^ //; s/ $//' >"$folder/copied"
"$prony" answer large --minutes 0 --unit cpu $store --format json | grep -qF "\"command\":\"$(cat "$folder/copied")\""
report commands_can_be_copied $? "$(cat "$folder/copied")"

expect refuses_other_formats 2 'expected json' "$prony" answer --format xml $store
"$prony" store create --empty --store "$folder/empty.db" >/dev/null 2>&1
says begins_with_the_demo 'prony suite demo' "$prony" answer --store "$folder/empty.db"

# An ONNX file is not trained unless that is asked for.
if "$prony" export small --out "$folder/mine.onnx" >/dev/null 2>&1; then
    says onnx_means_inference 'with phase inference yet' "$prony" answer "$folder/mine.onnx" --minutes 0 --store "$folder/empty.db"
else
    echo "skip $suite.onnx_means_inference: built without ONNX"
fi

# It measures others, too: one that cannot start is left out with its reason, in one line.
mkdir -p "$folder/tree/bin" "$folder/tree/peers/numpy"
cp "$prony" "$folder/tree/bin/prony"
cat >"$folder/tree/peers/numpy/peer" <<'EOF'
#!/bin/sh
while read -r request; do echo '{"status":"unsupported","reason":"there is no NumPy here"}'; done
EOF
chmod +x "$folder/tree/peers/numpy/peer"
output=$("$folder/tree/bin/prony" answer small --minutes 0.01 --store "$folder/measured.db" 2>&1)
holds passes_reasons_on "$output" "left out    NumPy: "
[ "$(printf '%s\n' "$output" | grep -c '^left out')" = 1 ]
report says_it_once $? "$output"

# Those that are installed, whatever their names, but none that loops over weights in Python.
# There is always time for three.
for peer in abacus beads cards python-list; do
    mkdir "$folder/tree/peers/$peer"
    cp "$folder/tree/peers/numpy/peer" "$folder/tree/peers/$peer/"
done
output=$("$folder/tree/bin/prony" answer small --minutes 0.01 --store "$folder/rivals.db" 2>&1)
holds asks_the_frameworks_that_are_there "$output" "left out    abacus: "
holds says_for_which_there_was_no_time "$output" "no time     cards: a longer --minutes"
case $output in *[Ll]ist:*) report asks_no_python_list 1 "$output" ;; *) report asks_no_python_list 0 ;; esac

# Where there is no GPU no command asks for one, though results of one came with prony.
if [ ! -e /dev/nvidiactl ]; then
    for network in large small wide; do
        "$prony" answer $network --minutes 0 $store
        "$prony" answer $network --minutes 0 --format json $store | grep -o '"command":"[^"]*"'
    done | grep 'prony.*\(--unit [cpu,]*gpu\|--backend cuda\)' >"$folder/gpu"
    [ ! -s "$folder/gpu" ]
    report suggests_no_gpu_where_there_is_none $? "$(cat "$folder/gpu")"
fi

# One that computes wrongly is told with its reason; the others are measured all the same.
mkdir "$folder/wrong"
cat >"$folder/wrong/blas.c" <<'EOF'
void openblas_set_num_threads(int threads) { (void)threads; }
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc)
{
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++)
            c[i * ldc + j] = 7;
}
EOF
cc -w -shared -fPIC -o "$folder/wrong/libopenblas.so.0" "$folder/wrong/blas.c" || exit 2
output=$(LD_LIBRARY_PATH="$folder/wrong" "$folder/tree/bin/prony" answer mlp:8-64-4 --minutes 0.01 --store "$folder/failed.db" 2>&1)
found=$?
holds tells_what_failed "$output" "failed      prony (blas), batch 1, 8, 64, 256: "
holds answers_from_the_others "$output" "best        prony (simd)"
[ $found = 0 ]
report goes_on_after_a_failure $? "status $found: $output"
case $("$prony" bench mlp:8-64-4 --backend blas --batch 1,8,64,256 --threads 1,"$(nproc)" --seconds 0.02 \
    --store "$folder/failed.db" 2>&1) in
*"no BLAS"*) echo "skip $suite.tells_no_failure_that_is_mended: no BLAS is installed" ;;
*)
    output=$("$prony" answer mlp:8-64-4 --minutes 0 --store "$folder/failed.db" 2>&1)
    case $output in *"failed  "*) found=1 ;; *best*) found=0 ;; *) found=1 ;; esac
    report tells_no_failure_that_is_mended $found "$output"
    ;;
esac

if [ -f "$PRONY_BUILD/guide/main.js" ] && command -v curl >/dev/null; then
    "$prony" guide --port 0 $store >"$folder/log" 2>&1 &
    guide=$!
    await 'localhost:[0-9]' "$folder/log"
    port=$(sed -n 's/.*localhost:\([0-9]*\).*/\1/p' "$folder/log")
    curl -s "http://localhost:$port/api/overview" >"$folder/page.json"
    grep -o '"chart":"[^"]*"' "$folder/page.json" | sed 's/.*:"//; s/"$//' | while read -r chart; do
        curl -s "http://localhost:$port/api/query?$chart" | grep -q '"points":\[{' || echo "$chart"
    done >"$folder/empty_charts"
    kill -INT "$guide"
    wait "$guide"
    [ ! -s "$folder/empty_charts" ]
    report charts_show_results $? "without points: $(cat "$folder/empty_charts")"
    [ "$(cat "$folder/page.json")" = "$(cat "$folder/terminal.json")" ]
    report page_and_terminal_are_the_same $? "page: $(cat "$folder/page.json"), terminal: $(cat "$folder/terminal.json")"
else
    echo "skip $suite.page_and_terminal_are_the_same: needs the guide and curl"
fi
exit $status
