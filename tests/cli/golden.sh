# What commands print, at 80 and at 120 columns, beside tests/golden/WIDTH/NAME.txt; and no line that is
# wider. What is measured varies: of it figures are N, and notes are left out.
#
#     PRONY_BUILD=build sh tests/cli/golden.sh --update    takes what is printed as what is wanted

suite=golden
. tests/shell/command.sh

update=${1:-}
export XDG_CACHE_HOME="$folder/cache" XDG_DATA_HOME="$folder/data" XDG_CONFIG_HOME="$folder/config"

# widest FILE WIDTH: prints the lines that have more characters.
widest() {
    LC_ALL=C awk -v width="$2" '
        { line = $0; gsub(/[\200-\277]/, "", line) } # bytes of a character after its first
        length(line) > width { print length(line) " columns: " $0 }' "$1"
}

# run WIDTH NAME COMMAND…: what it prints, in a file of the folder; no line is wider.
run() {
    width=$1 name=$2 found=$folder/$1_$2
    shift 2
    COLUMNS=$width "$@" >"$found" 2>&1 </dev/null
    wide=$(widest "$found" "$width")
    [ -s "$found" ] && [ -z "$wide" ]
    report "${name}_fits_$width" $? "$wide"
}

# compare: that file with what is wanted.
compare() {
    wanted=tests/golden/$width/$name.txt
    if [ "$update" = --update ]; then
        mkdir -p "tests/golden/$width"
        cp "$found" "$wanted"
        return
    fi
    difference=$(diff -u "$wanted" "$found" 2>&1)
    report "${name}_at_$width" $? "$difference
if this is meant: PRONY_BUILD=$PRONY_BUILD sh tests/cli/golden.sh --update"
}

# shown NAME COMMAND…: the same each time.
shown() {
    for columns in 80 120; do
        run $columns "$@"
        compare
    done
}

# measured NAME COMMAND…: its title, its headings and the words of its rows are the same.
measured() {
    for columns in 80 120; do
        run $columns "$@"
        awk '/^prony: / { next } /^$/ && ++parts == 2 { exit } { print }' "$found" |
            sed -e 's/ ± [0-9.]* %//' -e 's/[*†‡§¶]//g' -e 's/[0-9][0-9.,]*/N/g' -e 's/–/N/g' \
                -e 's/N \([nµm]\{0,1\}s\|[kMGT]\)\>/N/g' -e 's/N %/N/g' -e 's/multiply-adds\|memory/N/' \
                -e 's/  */ /g' -e 's/ *$//' >"$folder/masked"
        mv "$folder/masked" "$found"
        compare
    done
}

# masked NAME COMMAND…: every word of it, with N for figures; what a busy machine adds (notes below tables, the
# bar) is left out.
masked() {
    for columns in 80 120; do
        run $columns "$@"
        sed -e "s|$folder|FOLDER|g" "$found" |
            awk '/^prony: / || / gone, about / { next } /^[*†‡§¶] / { note = 1; next } /^  / && note { next } { note = 0; print }' |
            sed -e 's/ ± [0-9.]* %//g' -e 's/[*†‡§¶]//g' -e 's/[0-9][0-9.,e+-]*/N/g' -e 's/–/N/g' \
                -e 's/N \([nµm]\{0,1\}s\|[kMGT]\)\>/N/g' -e 's/N [kMG]\{0,1\}B\>/N/g' -e 's/N %/N/g' \
                -e 's/N\( min N\| h N min\| min\| h\)\>/N/g' -e 's/N of N/N/g' -e 's/, N left$//' -e 's/  */ /g' -e 's/ *$//' >"$folder/masked"
        mv "$folder/masked" "$found"
        compare
    done
}

# fits NAME COMMAND…: only its width is looked at.
fits() {
    for columns in 80 120; do
        run $columns "$@"
    done
}

"$prony" machine --name 'a machine' >/dev/null 2>&1
shown help "$prony" help
for command in $("$prony" help | awk '/^  [a-z]/ && $1 != "prony" { print $1 }'); do
    shown "help_$command" "$prony" "$command" --help
    fits "help_all_$command" "$prony" "$command" --help all
done
shown networks "$prony" networks
masked suites "$prony" suites
shown glossary "$prony" glossary
shown glossary_term "$prony" glossary roofline

shown explain "$prony" explain small --phase training --batch 3 --backend ref
shown explain_unfused "$prony" explain lenet --batch 2
shown explain_recipe "$prony" explain gan --phase training

# Records that are made up: the figures are theirs.
tools/make-records 60 3 >"$folder/made.jsonl"
store="--store $folder/store.db"
# shellcheck disable=SC2086
if "$prony" store create --empty $store >/dev/null 2>&1 &&
    "$prony" store add "$folder/made.jsonl" $store >/dev/null 2>&1; then
    shown store_list "$prony" store list --limit 12 $store
    shown query "$prony" query --group-by framework --where phase=training $store
    shown query_bars "$prony" query --where '' --x framework --y time_median --aggregate best $store
    shown query_dots "$prony" query --x framework --y time_median --log y $store
    shown answer "$prony" answer $store
    shown answer_network "$prony" answer small --minutes 0 --unit cpu $store
    shown store_check "$prony" store check $store
    shown query_baseline "$prony" query --where '' --x batch --baseline first --draw none $store
else
    echo "skip golden.store_list: this build has no store, or SQLite is not installed"
fi
sed 's/"median":\([0-9]\)/"median":1\1/' "$folder/made.jsonl" >"$folder/slower.jsonl"
shown compare "$prony" compare "$folder/made.jsonl" "$folder/slower.jsonl"

recorded=tests/trace/recorded
shown compare_profiles "$prony" compare $recorded/launch.single.trace.gz $recorded/launch.graph.trace.gz

shown profile_trace "$prony" profile $recorded/copy.pinned.trace.gz
masked explain_workers "$prony" explain small --workers 2 --phase training --batch 8
shown advise_rules "$prony" advise --rules --store "$folder/none.db"

measured bench "$prony" bench small --batch 1,10 --backend ref --seconds 0.02
measured bench_joined "$prony" bench small --batch 1,2 --backend ref --phase training,inference \
    --isa scalar --fusion on,off --optimiser sgd,adam --caches warm --skip optimiser=adam --seconds 0.02
measured bench_skips "$prony" bench small --backend ref --threads 1,2,3 --batch 1,2 --seconds 0.02
measured bench_kernels "$prony" bench --kernels sgd activate --backend ref --seconds 0.01
fits bench_against "$prony" bench small --backend ref --against ref --seconds 0.1
fits bench_precision "$prony" bench small --precision fp32,bf16,int8 --phase inference --seconds 0.01
fits profile_command "$prony" profile -- sh -c true
fits advise "$prony" advise small --backend ref --seconds 0.01
fits comm "$prony" comm --workers 2 --bytes 100k
printf '# One line.\nsmall --backend ref --batch 1,2 --seconds 0.01\n' >"$folder/one.suite"
fits suite "$prony" suite "$folder/one.suite"
fits profile "$prony" profile small --backend ref --seconds 0.05
fits machine "$prony" machine

# Training and what follows it.
masked train "$prony" train mlp:4-8-3 iris --epochs 20 --backend ref --out "$folder/iris.model"
masked export "$prony" export lenet --out "$folder/lenet.onnx"
masked predict "$prony" predict "$folder/iris.model" iris --backend ref
masked quantise "$prony" quantise "$folder/iris.model" iris --out "$folder/iris8.model"
awk 'BEGIN {
    print "id,area,city,price"
    for (i = 0; i < 90; i++) printf "%d,%s,%s,%d\n", i, i % 9 ? 40 + i * 7 % 80 : "", i % 3 ? "Rome" : "Bari",
        1000 * (i * 7 % 80) + 50000 * (i % 3 == 0)
}' >"$folder/house.csv"
masked train_csv "$prony" train mlp:auto "$folder/house.csv" --drop id --fill median --epochs 5 --backend ref
"$prony" train gan ring:200 --epochs 1 --backend ref --out "$folder/gan.model" >/dev/null 2>&1
masked generate "$prony" generate gan "$folder/gan.model" --count 3 --backend ref
exit $status
