# Who may include whom: the rules of docs/architecture.md, complete, nothing inherited. A file of a
# module includes its own module and those named here; cli includes everything. The page's table says the
# same, and its picture shows every module. Also: the names of source files are unique in the tree, so that
# a name alone finds a file.

rules='
base
core       base
nn         core base
backend/*  core base
profile    trace core base
comm       core base
data       base
record     base
train      nn data core base
simulate   comm train nn core base
library    train nn data comm core base backend/cpu
estimate   core record base
bench      library train estimate profile trace nn data record comm core base
store      record base
trace      base
agent      base
watch      agent trace bench base
advise     watch trace record base
finding    store record base
guide      finding advise store trace record base
cli        *
'

# Prints each #include of TREE/src that the rules do not allow. Backends are a module each.
broken_includes() {
    (cd "$1/src" && grep -rn --include='*.[ch]' --include='*.cu' --include='*.cuh' --include='*.def' \
        --exclude-dir=node_modules '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' .) |
        awk -v rules="$rules" '
            function module_of(path, part) {
                split(path, part, "/")
                return part[1] == "backend" ? part[1] "/" part[2] : part[1]
            }
            BEGIN {
                count = split(rules, line, "\n")
                for (i = 1; i <= count; i++) {
                    words = split(line[i], word, " ")
                    for (j = 2; j <= words; j++)
                        allowed[word[1], word[j]] = 1
                    if (words > 0)
                        known[word[1]] = 1
                }
            }
            {
                file = $0; sub(/^\.\//, "", file); sub(/:.*/, "", file)
                target = $0; sub(/^[^"]*"/, "", target); sub(/".*/, "", target)
                from = module_of(file); to = module_of(target)
                rule = from; sub(/^backend\/.*/, "backend/*", rule)
                if (!(rule in known))
                    print "src/" file ": the module " from " is in no rule"
                else if (target !~ /^prony[._]/ && from != to && !((rule, to) in allowed) && !((rule, "*") in allowed))
                    print "src/" file " includes " target ": " from " may not include " to
            }'
}

# Prints each name that two source files of TREE share.
shared_names() {
    (cd "$1" && find src tests include -name node_modules -prune -o -type f \
        \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' \) -print 2>/dev/null) |
        sed 's|.*/||' | sort | uniq -d
}

# "FROM TO" of the rules, and of the table of a page.
pairs_of_rules() {
    printf '%s\n' "$rules" | awk '{ for (i = 2; i <= NF; i++) print $1, $i }' | sort
}
pairs_of_table() { # PAGE
    awk -F'|' '
        /^\| module \| may include \|/ { table = 1; next }
        !/^\|/ { table = 0 }
        table && !/^\|---/ {
            may = $3
            sub(/, and the built-in backends/, " backend/cpu", may)
            sub(/everything/, "*", may)
            count = split($2, from, ","); last = split(may, to, " ")
            for (i = 1; i <= count; i++)
                for (j = 1; j <= last; j++) {
                    gsub(/ /, "", from[i])
                    print from[i], to[j]
                }
        }' "$1" | sort
}
# Modules of TREE that its picture does not name.
not_in_the_picture() {
    for folder in "$1"/src/*/; do
        module=$(basename "$folder")
        grep -qE ">$module(/[a-z]+)?[ <]" "$1/docs/pictures/architecture.svg" || echo "$module"
    done
}

status=0
# expect_nothing NAME OUTPUT
expect_nothing() {
    if [ -z "$2" ]; then
        echo "ok   check_includes.$1"
    else
        printf '%s\nFAIL check_includes.%s\n' "$2" "$1"
        status=1
    fi
}
# expect_text NAME OUTPUT PART
expect_text() {
    case $2 in
    *"$3"*) echo "ok   check_includes.$1" ;;
    *)
        printf 'found "%s", expected "%s"\nFAIL check_includes.%s\n' "$2" "$3" "$1"
        status=1
        ;;
    esac
}

expect_nothing only_what_is_allowed "$(broken_includes .)"
# What the commands can do, a program that uses the library can.
expect_nothing training_goes_through_the_library \
    "$(grep -nE '#include "(train|nn|data|core|backend)/' src/cli/cmd/cmd_train.c src/cli/cmd/cmd_predict.c)"
expect_nothing names_are_unique "$(shared_names .)"
tables=$(mktemp -d)
pairs_of_rules >"$tables/rules"
pairs_of_table docs/architecture.md >"$tables/page"
expect_nothing the_page_has_these_rules "$(diff "$tables/rules" "$tables/page")"
rm -rf "$tables"
expect_nothing the_picture_has_every_module "$(not_in_the_picture .)"

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
mkdir -p "$planted/src/base" "$planted/src/backend/cpu" "$planted/src/nn" "$planted/src/odd"
echo '#include "core/program.h"' >"$planted/src/base/text.c"
echo '# include "nn/network.h"' >"$planted/src/backend/cpu/dense.c"
echo '#include "backend/cuda/stream.h"' >"$planted/src/backend/cpu/plan.c"
echo '#include "base/text.h"' >"$planted/src/odd/text.c"
mkdir -p "$planted/docs/pictures"
echo '<text>base</text><text>backend/cpu</text><text>nn</text>' >"$planted/docs/pictures/architecture.svg"
printf '| module | may include |\n|---|---|\n| nn, backend/* | core base |\n| cli | everything |\n' >"$planted/page.md"
broken=$(broken_includes "$planted")
expect_text sees_base_including_core "$broken" 'base/text.c includes core/program.h'
expect_text sees_a_backend_including_nn "$broken" 'backend/cpu may not include nn'
expect_text sees_a_backend_including_another "$broken" 'backend/cpu may not include backend/cuda'
expect_text sees_an_unknown_module "$broken" 'odd is in no rule'
expect_text sees_a_module_that_is_not_drawn "$(not_in_the_picture "$planted")" odd
expect_text reads_the_page "$(pairs_of_table "$planted/page.md" | tr '\n' ';')" \
    'backend/* base;backend/* core;cli *;nn base;nn core;'
expect_text sees_a_name_twice "$(shared_names "$planted")" 'text.c'
exit $status
