# prony profile -- python: each version of CPython that is installed here, by its own layout: lines of
# a thread that runs, and of one that waits. A version that is not there is left out, and it is said.

suite=pythons
. tests/shell/command.sh

for version in 3.8 3.9 3.10 3.11 3.12 3.13 3.14; do
    python=
    for path in $(command -v python$version) "$HOME"/.pyenv/versions/$version.*/bin/python$version; do
        [ "$("$path" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = $version ] && python=$path
    done
    if [ -z "$python" ]; then
        echo "skip pythons.$version: no Python $version here"
        continue
    fi
    "$prony" profile --once --rate 200 --out "$folder/run.trace" -- "$python" tests/watch/two_threads.py \
        >/dev/null 2>"$folder/report"
    holds reads_lines_of_$version "$(cat "$folder/report")" 'two_threads.py:7'
    holds knows_functions_of_$version "$(cat "$folder/report")" 'spin'
    holds tears_nothing_of_$version "$(cat "$folder/report")" '0.0 % are torn'
    "$prony" profile --trace "$folder/run.json" "$folder/run.trace" >/dev/null
    holds sees_who_waits_in_$version "$(grep -o 'two_threads.py:1[12]' "$folder/run.json" | sort -u)" 'two_threads.py:12'
done
exit $status
