# An installed prony in a folder of its own: what is there, and that the executable, the libraries,
# the manual page and the completion work from there. DESTDIR is honoured, so the prefix is moved.

suite=install
. tests/shell/command.sh
prefix=$folder/opt/prony

DESTDIR=$folder cmake --install "$PRONY_BUILD" --prefix /opt/prony >"$folder/log" 2>&1
report installs $?
[ "$status" -eq 0 ] || cat "$folder/log"

prony=$prefix/bin/prony
holds executable_finds_its_peers "$(cd "$folder" && "$prony" machine)" python-list
for plugin in "$PRONY_BUILD"/prony_*.so; do
    [ -e "$plugin" ] || continue
    name=$(basename "$plugin" .so)
    holds "executable_finds_${name}" "$(cd "$folder" && "$prony" machine)" "${name#prony_}"
done

# Every command and every option it has is in the manual page.
page=$(sed 's/\\-/-/g' "$prefix/share/man/man1/prony.1")
commands=$("$prony" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
for command in $commands; do
    holds "manual_has_$command" "$page" ".SS prony $command"
    for option in $("$prony" "$command" --help all | sed -n 's/^  --\([a-z0-9_-]*\).*/\1/p'); do
        case $option:$page in help:* | *"--$option"*) ;; *) holds manual "$page" "--$option" ;; esac
    done
done

complete_word() { # WORDS…: what bash would offer for the last
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _prony; echo "${COMPREPLY[@]}"' \
        bash "$prefix/share/bash-completion/completions/prony" "$@"
}
if command -v bash >/dev/null; then
    holds completes_commands "$(complete_word prony expl)" explain
    holds completes_options "$(complete_word prony explain small --pha)" --phase
fi

# The example against the installed copy, with both libraries; it then speaks to the executable.
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"
if command -v pkg-config >/dev/null; then
    flags=$(pkg-config --cflags --libs prony)
    static=$(pkg-config --static --cflags --libs prony | sed "s|-lprony|$prefix/lib/libprony.a|")
else
    flags="-I$prefix/include -L$prefix/lib -lprony"
    static="-I$prefix/include $prefix/lib/libprony.a -lm -ldl -pthread"
fi
for kind in shared static; do
    [ $kind = static ] && flags=$static
    cc -std=c99 -Wall -Wextra -Werror examples/iris.c -o "$folder/iris" $flags
    report "example_compiles_$kind" $?
    found=$(cd "$folder" && ./iris 2>&1)
    right=$(printf '%s' "$found" | sed -n 's/.*, \([0-9]*\) % right in the test/\1/p')
    [ "${right:-0}" -ge 90 ] || echo "found: $found, expected at least 90 % right"
    [ "${right:-0}" -ge 90 ]
    report "example_learns_$kind" $?
    cc -std=c99 -Wall -Wextra -Werror examples/requests.c -o "$folder/requests" $flags
    holds "example_streams_$kind" "$("$folder/requests" 2>&1)" \
        "1000 answers; the first is the same by itself"
done
sed 1d datasets/iris.csv | cut -d, -f1-4 >"$folder/flowers.csv"
holds executable_reads_its_weights \
    "$("$prony" predict mlp:4-16-3 "$folder/iris.safetensors" "$folder/flowers.csv" 2>&1)" "130 more rows"

# A caller whose locale writes 0,5: files are the same, so the executable reads them.
if localedef -i de_DE -f UTF-8 "$folder/de_DE.UTF-8" >"$folder/log" 2>&1; then
    awk '/^#include <stdio.h>/ { print "#include <locale.h>" }
         { print }
         /^int main/ { main = 1 }
         main && /^{/ { print "    if (!setlocale(LC_ALL, \"de_DE.UTF-8\"))\n        return 2;"; main = 0 }' \
        examples/iris.c >"$folder/comma.c"
    mv "$folder/iris.safetensors" "$folder/point.safetensors"
    cc -std=c99 "$folder/comma.c" -o "$folder/comma" $flags
    holds caller_writes_a_comma "$(cd "$folder" && LOCPATH=$folder ./comma 2>&1)" "loss 0,"
    cmp "$folder/iris.safetensors" "$folder/point.safetensors"
    report files_have_a_point_in_any_locale $?
else
    echo "skip install.files_have_a_point_in_any_locale: there is no localedef with de_DE"
fi

# A program that uses the library sees prony_* and nothing else.
if command -v nm >/dev/null; then
    others=$(nm -D --defined-only "$prefix/lib/libprony.so"; nm --defined-only --extern-only "$prefix/lib/libprony.a")
    others=$(printf '%s\n' "$others" | awk 'NF == 3 && $3 !~ /^prony_/ { print $3 }')
    [ -z "$others" ] || printf 'found %s, expected prony_* only\n' "$others"
    [ -z "$others" ]
    report exports_prony_only $?
fi
exit $status
