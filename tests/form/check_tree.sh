# What must not be in the tree: paths of somebody's machine, compiler flags that change arithmetic or
# tie the program to one CPU, notes to be done later, hosts of package registries, switches for parts
# that may be absent: such a part has a file NAME_absent.c. No folder has more than 30 sources, no source
# more than 600 lines. A folder of src/ with more than ten sources has a README. A source that opens with
# the name of a file opens with its own.

tree_files() {
    (cd "$1" && find . \( -name .git -o -path './build*' -o -name node_modules -o -name __pycache__ \) \
        -prune -o -type f -print | grep -vE '\.(png|jpg|db|onnx|safetensors|idx|npy)$')
}

# find_in TREE PATTERN [FILES_TO_LEAVE_OUT]: lines that match. This file spells the patterns in two
# parts so as not to find itself.
find_in() {
    tree_files "$1" | grep -vE "${3:-^$}" | (cd "$1" && xargs -r grep -InE -e "$2" /dev/null)
}

machine_paths='(^|[^A-Za-z0-9_./$}*-])/(''work|root|home)/[A-Za-z0-9]'
fast_math='-f''fast-math|-O''fast|march=''native'
notes='(^|[^A-Za-z])(TO''DO|FIX''ME|XX''X)([^A-Za-z]|$)'
parts='(if|ifdef|ifndef|defined) *\(?PRONY_''HAVE_'
hosts='registry\.''npmjs|pypi\.''org|"resolved": *"http'

status=0
absent() { # NAME PATTERN [FILES_TO_LEAVE_OUT]
    found=$(find_in . "$2" "$3")
    if [ -n "$found" ]; then
        printf '%s\nFAIL check_tree.%s\n' "$found" "$1"
        status=1
        return
    fi
    echo "ok   check_tree.$1"
}
absent no_machine_paths "$machine_paths"
# peers in C are compiled where they run
absent no_fast_math "$fast_math" '\.md$|^\./peers/c_peer\.py$'
absent no_notes_for_later "$notes"
absent no_registry_hosts "$hosts"
absent no_switches_for_parts "$parts"

sources() { # TREE
    tree_files "$1" | grep -E '^\./(src|tests|include|peers)/.*\.(c|h|cu|cuh|ts)$'
}
crowded() { # TREE: folders with too many sources
    sources "$1" | sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 30 { print $2 ": " $1 " sources" }'
}
tables() { # TREE
    tree_files "$1" | grep -E '^\./(src|tests|include)/.*\.def$'
}
long() { # TREE: sources and tables with too many lines
    (sources "$1" && tables "$1") | (cd "$1" && xargs -r wc -l /dev/null) | awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines" }'
}
unexplained() { # TREE: folders of src/ with many sources and no page about them
    sources "$1" | grep '^\./src/' | sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 10 { print $2 }' |
        while read -r folder; do
            [ -f "$1/$folder/README.md" ] || echo "$folder: no README.md"
        done
}
misnamed() { # TREE: sources that open with the name of another file
    (sources "$1" && tables "$1") | (cd "$1" && xargs -r awk '
        FNR == 1 && match($0, /^(\/\*|\/\/) [a-z0-9_]+\.(c|h|cu|cuh|def|ts):/) {
            split(substr($0, 4), says, ":")
            own = FILENAME
            sub(/.*\//, "", own)
            if (says[1] != own) print FILENAME ": opens as " says[1]
        }' /dev/null)
}
# none NAME LINES: there must be none.
none() {
    if [ -n "$2" ]; then
        printf '%s\nFAIL check_tree.%s\n' "$2" "$1"
        status=1
        return
    fi
    echo "ok   check_tree.$1"
}
none no_crowded_folder "$(crowded .)"
none no_long_source "$(long .)"
none many_sources_have_a_readme "$(unexplained .)"
none sources_open_with_their_name "$(misnamed .)"

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
mkdir "$planted/src"
printf 'open("%s/me/data.csv");\n/* TO''DO later */\n#ifdef PRONY_''HAVE_STORE\n' "/home" >"$planted/src/a.c"
printf 'add_compile_options(-f''fast-math)\n' >"$planted/CMakeLists.txt"
printf '"resolved": "%s://somewhere/x.tgz"\n' http >"$planted/package-lock.json"
seq 31 | while read -r number; do echo 'int x;' >"$planted/src/part$number.c"; done
seq 601 >"$planted/src/part1.c"
seq 601 >"$planted/src/rows.def"
echo '/* part3.c: moved. */' >"$planted/src/part2.c"
missed=
[ -n "$(crowded "$planted")" ] || missed=" a crowded folder"
[ "$(long "$planted" | wc -l)" -eq 2 ] || missed="$missed a long source, a long table"
[ -n "$(unexplained "$planted")" ] || missed="$missed a folder without README"
[ -n "$(misnamed "$planted")" ] || missed="$missed a source with another name"
for pattern in "$machine_paths" "$fast_math" "$notes" "$hosts" "$parts"; do
    [ -n "$(find_in "$planted" "$pattern")" ] || missed="$missed $pattern"
done
if [ -z "$missed" ]; then
    echo "ok   check_tree.sees_what_is_planted"
else
    printf 'not seen:%s\nFAIL check_tree.sees_what_is_planted\n' "$missed"
    status=1
fi
exit $status
