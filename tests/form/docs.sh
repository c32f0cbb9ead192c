# The documentation, carried out: every `    $ prony …` line of README.md and docs/ is run, in order, in
# a folder of its own for each document, and must say what stands under it.
#
# The indented lines that follow a command are found in its output, each as (part of) a line. Where
# one begins with "prony: " the command must fail, otherwise it must succeed. A block ```net FILE is
# written to that file first. `prony guide` serves until it is stopped: it is tested elsewhere.

root=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
PATH=$PRONY_BUILD:$PATH
COLUMNS=500 # a row of a table is a line
export PATH COLUMNS

# Turns a document into lines "file NAME", "text …" (of that file), "run COMMAND", "says …".
steps_of() {
    awk '
        /^```/ { inside = 0 }
        inside { print "text " $0 }
        /^```net / { inside = 1; print "file " $2 }
        /^    \$ prony / {
            sub(/^    \$ /, "")
            command = !/^prony guide/
            if (command) print "run " $0
            next
        }
        /^    / && command { sub(/^    /, ""); print "says " $0; next }
        { command = 0 }' "$1"
}

# Judges the command that was run last.
judge() {
    [ -n "$command" ] || return 0
    if [ "$fails" -eq "$((found == 0))" ]; then
        problem="exit status $found"
    fi
    if [ -n "$problem" ]; then
        cat output
        echo "docs/$document: $command: $problem"
        failures=1
    fi
    commands=$((commands + 1))
    command=
}

carry_out() {
    commands=0 failures=0 command= file=
    while IFS= read -r line; do
        value=${line#* }
        case $line in
        file*) file=$value && : >"$file" ;;
        text*) printf '%s\n' "$value" >>"$file" ;;
        run*)
            judge
            command=$value fails=0 problem=
            timeout 120 sh -c "$command" >output 2>&1 </dev/null
            found=$?
            ;;
        says*)
            case $value in "prony: "*) fails=1 ;; esac
            grep -qF -- "$value" output || problem="did not say \"$value\""
            ;;
        esac
    done <steps
    judge
}

# The files that docs/data.md speaks of: a hundred images of 2 × 2 and their labels; 500 rows of six
# tokens, and then the same in reverse; three codes of eight numbers, of docs/recipes.md; and 240 houses
# with texts, gaps and prices.
make_files() {
    awk 'BEGIN {
        split("Bari Lyon Rome", cities)
        print "id,area,rooms,city,garden,price"
        for (i = 1; i <= 240; i++) {
            seed = (seed * 25173 + 13849) % 65536
            area = 40 + seed % 160; city = 1 + int(seed / 256) % 3; garden = int(seed / 4096) % 2
            printf "%d,%d,%s,%s,%s,%d\n", i, area, i % 20 ? int(area / 28) : "", cities[city],
                garden ? "yes" : "no", 2000 * area + 30000 * city + 25000 * garden + seed % 7001
        }
    }' >house.csv
    printf '%s\n' 0,0,0,0,0,0,0,0 1,0,-1,0,1,0,-1,0 0.5,1,2,-1,0,0,1,0 >codes.csv
    cp "$root/examples/transformer.net" .
    for trace in copy.pageable copy.pinned wide.bf16; do # of docs/advice.md and docs/profiling.md
        cp "$root/tests/trace/recorded/$trace.trace.gz" "${trace#*.}.trace.gz"
    done
    cp "$root/tests/trace/recorded/kineto.copy.pageable.json.gz" trace.json.gz
    awk 'BEGIN {
        print "a,b,c,d,e,f,u,v,w,x,y,z"
        for (i = 0; i < 500; i++) {
            line = back = ""
            for (t = 0; t < 6; t++) {
                seed = (seed * 25173 + 13849) % 65536
                token = int(seed / 8192)
                line = line token ","
                back = token (t ? "," : "") back
            }
            print line back
        }
    }' >reverse.csv
    printf '\000\000\010\003\000\000\000\144\000\000\000\002\000\000\000\002' >images.idx
    printf '\000\000\010\001\000\000\000\144' >labels.idx
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        for _ in 1 2 3 4 5; do
            printf '\001\002\003\004\144\002\001\003' >>images.idx
            printf '\000\001' >>labels.idx
        done
    done
}

for path in README.md docs/*.md docs/*/*.md; do
    [ -f "$path" ] || continue
    document=${path#docs/}
    document=$(echo "${document%.md}" | tr / _)
    mkdir "$work/$document"
    steps_of "$path" >"$work/$document/steps"
    grep -q '^run ' "$work/$document/steps" || continue
    cd "$work/$document" || exit 2
    make_files
    carry_out
    cd "$root" || exit 2
    if [ $failures -eq 0 ]; then
        echo "ok   docs.$document ($commands commands)"
    else
        echo "FAIL docs.$document"
        status=1
    fi
done

for path in README.md docs/*.md docs/*/*.md; do
    if tools/docs "$path" | cmp -s - "$path"; then
        continue
    fi
    tools/docs "$path" | diff "$path" -
    echo "$path: its generated part is not up to date; make docs writes it"
    echo "FAIL docs.generated_parts"
    exit 1
done
echo "ok   docs.generated_parts"
exit $status
