# The words that a reader meets: tests/form/words.py reads help, errors, findings, the page, docs and comments, and
# prints the sentences that are too long or bend plain English. A tree with planted faults shows that it sees.

status=0
report() { # NAME FOUND
    if [ -n "$2" ]; then
        printf '%s\nFAIL check_words.%s\n' "$2" "$1"
        status=1
    else
        echo "ok   check_words.$1"
    fi
}
report plain_sentences "$(python3 tests/form/words.py . 2>&1)"

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
mkdir -p "$planted/include" "$planted/src/guide/ui/views" "$planted/docs" "$planted/tools"
long='one two three four five six seven eight nine ten eleven twelve one two three four five six seven eight nine ten'
cat >"$planted/src/a.c" <<END
/* Of what a comment says nothing is read: $long $long */
static const char *const texts[] = {
    "$long one "
    "two three %d" PRId64 "four", /* 1: too long, over three literals */
    "What is measured here is shown below", /* 2: subject */
    "what is measured here?", /* a question */
    "it runs so many iterations", /* 3 */
    "prony bench small --batch 1 --phase training is a command of so many words\n",
    "SELECT so many FROM results", "a result of 100 %% of what it can do", /* 4 */
};
END
cat >"$planted/include/a.h" <<END
/* $long
 * $long. It is short. What is here is a fault.
 *
 *   prony_run(struct prony *network, what it is)    of a table nothing is a sentence $long $long
 */
const char *text; /* of the first letter: "/* no comment" */
int count;        /* letters, of which the first is a capital */
END
printf 'HELP(x, "of the rows, those that are kept for it")\n' >"$planted/src/a.def" # 5
printf 'const text = `${n} results, which nobody checked yet`;\n' >"$planted/src/guide/ui/views/a.ts" # 6
printf 'echo "the machine was asked and said so twice"\n' >"$planted/tools/start" # 7
{
    printf '# Of what it is made, as a title\n\nIt is `%s`, as\nwhoever reads it sees.\n\n' "$long $long" # 8
    printf '| a | it is said to be fast |\n\n    of whom code is read and is not said so\n\n' # 9
    printf '<!-- made -->\n%s %s.\n<!-- end -->\n- of the two items, this one is a fault\n' "$long" "$long" # 10
} >"$planted/docs/a.md"
seen=$(python3 tests/form/words.py "$planted")
report sees_what_is_planted "$([ "$(echo "$seen" | wc -l)" -eq 13 ] || echo "expected 13 faults, found:
$seen")"
exit $status
