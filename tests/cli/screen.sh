# What a person sees on a terminal: a bar that moves and goes, colour that can be refused; and readers
# that close their end.

suite=screen
. tests/shell/command.sh

# A reader that has seen enough is no error: nothing is said, and the status is SIGPIPE's.
# leaves NAME COMMAND…: its output goes to a reader that takes one line and closes.
leaves() {
    name=$1
    shift
    { "$@" 2>"$folder/said"; echo $? >"$folder/left"; } | head -n 1 >"$folder/first"
    [ ! -s "$folder/said" ] && [ -s "$folder/first" ]
    report "$name" $? "it said: $(cat "$folder/said"), status $(cat "$folder/left")"
}
leaves quiet_help "$prony" help
leaves quiet_manual "$prony" manual
leaves quiet_bench "$prony" bench small --batch 1-40 --seconds 0.01
[ "$(cat "$folder/left")" = 141 ]
report a_bench_without_a_reader_ends $? "status $(cat "$folder/left"), expected 141"
leaves quiet_filed_bench "$prony" bench small --batch 1-12 --seconds 0.01 --out "$folder/kept.jsonl"
found=$(grep -c '"kind":"result"' "$folder/kept.jsonl")
[ "$found" = 12 ]
report nothing_filed_is_lost $? "found $found results in the file, expected 12"

# A locale without UTF-8 gets ASCII, letters of names and files for programs excepted.
for variable in LC_ALL LANG; do
    found=$(env -u LC_ALL -u LC_CTYPE -u LANG $variable=C "$prony" bench small --backend ref --seconds 0.05 2>&1 |
        LC_ALL=C grep -c '[^ -~]')
    report "ascii_where_${variable}_is_C" "$found" "$found lines have other characters"
done
found=$(env -u LC_ALL LANG=C "$prony" bench small --backend ref --seconds 0.05 | grep -c ' +-[0-9.]* %')
report a_spread_in_ascii $((found == 0)) "found no +- in the table"
printf 'input 4\ndense 3\n' >"$folder/Zürich×.net"
holds a_name_keeps_its_letters "$(env -u LC_ALL LANG=C "$prony" explain "$folder/Zürich×.net")" 'Zürichx.net'
holds a_file_for_programs_is_exact "$(env -u LC_ALL LANG=C "$prony" bench "$folder/Zürich×.net" \
    --backend ref --seconds 0.05 --format json)" 'Zürich×.net'

if ! python3 -c 'import pty' 2>/dev/null; then
    echo "skip $suite: python3 is not installed, which gives the terminal"
    exit $status
fi
# on COLUMNS NAME COMMAND…: runs it on a terminal; $end is the screen it leaves, $seen all it ever showed.
on() {
    columns=$1 name=$2
    shift 2
    python3 tests/shell/terminal.py "$columns" 30 "$folder/$name" "$@"
    left=$?
    end=$(cat "$folder/$name/end") seen=$(cat "$folder/$name/seen")
}
# lacks NAME TEXT PART: the text does not contain PART.
lacks() {
    case $2 in
    *"$3"*) report "$1" 1 "found \"$2\", expected no \"$3\"" ;;
    *) report "$1" 0 ;;
    esac
}

on 80 bench "$prony" bench small --batch 1,3 --seconds 0.6 --backend ref
holds a_bar_says_how_far "$seen" '1 of 2   small, training, batch 3, prony'
holds a_bar_says_how_long "$seen" 'gone, about'
[ "$(grep -c '0 of 2' "$folder/bench/seen")" -ge 2 ]
report a_bar_moves_within_a_configuration $? "$seen"
lacks a_bar_goes "$end" '[#'
lacks its_time_goes "$end" ' gone'
on 60 narrow "$prony" bench small --batch 1 --seconds 0.4 --backend ref
wide=$(grep '^\[' "$folder/narrow/seen" | awk 'length($0) > 59')
[ -z "$wide" ]
report a_bar_fits_the_width $? "wider than 59: $wide"
on 80 train "$prony" train mlp:4-300-300-3 iris --epochs 300
holds training_has_a_bar "$seen" 'epoch '
lacks its_bar_goes "$end" '[#'
holds training_ends_with_its_test "$end" 'test accuracy'
INTERRUPT='0 of 1' on 80 stopped "$prony" bench large --batch 64 --backend ref --seconds 20
[ $left = 130 ]
report stops $? "status $left, expected 130"
lacks stopping_restores_the_line "$end" '[#'
lacks stopping_leaves_no_time "$end" ' gone'
TERM=dumb on 80 dumb "$prony" bench small --seconds 0.3
lacks a_dumb_terminal_has_no_sequences "$(cat "$folder/dumb/raw")" "$(printf '\033')"
piped=$("$prony" bench small --seconds 0.3 2>&1)
lacks a_pipe_has_no_bar "$piped" '[#'
lacks a_pipe_has_no_sequences "$piped" "$(printf '\033')"
# A message fits the terminal, indented below its first line; in a pipe it is one line.
on 60 error "$prony" train small iriss --target there-is-no-column-of-this-name
[ "$(echo "$end" | grep -c .)" -ge 2 ] && ! echo "$end" | grep -q '.\{61\}'
report a_message_fits_the_width $? "$end"
holds a_message_is_indented "$end" '
  '
"$prony" predict nothing nowhere 2>"$folder/line"
[ "$(wc -l <"$folder/line")" = 1 ]
report a_message_is_a_line_in_a_pipe $? "$(cat "$folder/line")"
exit $status
