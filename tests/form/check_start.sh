# tools/progress on the output of apt and ninja that is made up here, and tools/start around a program
# that only pretends to measure: what is said, in which order, and what Ctrl-C leaves.

suite=check_start
. tests/shell/command.sh

# moving KIND STAGE WORDS: each drawing a line of its own, without what clears it.
moving() {
    PRONY_PROGRESS=moves COLUMNS=80 sh tools/progress "$@" 2>&1 | tr '\r' '\n' | sed 's/^.\[K//'
}

now=$(date +%s)
apt=$({
    echo 'dlstatus:1:2.5:Retrieving file 1 of 4'
    echo "tick $((now + 65))" # the clock, which comes by itself every second
    echo 'tick of no clock'
    echo 'dlstatus:1:25.5:Retrieving file 1 of 4'
    echo "tick $((now + 105))"
    echo 'dlstatus:2:50.0:Retrieving file 2 of 4'
    echo 'pmstatus:gcc:40.0:Unpacking gcc'
    echo 'pmerror:gcc:nonsense:and more'
    echo 'Get:1 something that is no status'
    echo stopping
    echo 'exit 0'
} | moving apt "1 of 4" "downloading 612 MB")
holds shows_what_apt_fetched "$apt" "[#####---------------] 1 of 4: downloading 612 MB, 25 %, "
holds says_how_long_it_takes "$apt" "[##########----------] 1 of 4: downloading 612 MB, 50 %, 1 min 40 s left"
holds moves_without_news "$apt" "2 %, 1 min gone"
holds goes_on_to_installing "$apt" "[########------------] 1 of 4: installing, 40 %, 0 s gone"
holds says_that_ctrl_c_was_heard "$apt" "1 of 4: installing, 40 %, stopping after this step"
holds ends_with_a_line "$apt" "1 of 4: installing, done in "

ninja=$(printf '%s\n' '-- Configuring done' '[3/204] Building C object x.c.o' '[102/204] Linking' \
    '[what]/[this] is' '[7/x] or this' 'exit 7' | moving ninja "2 of 4" "preparing the build")
holds begins_with_what_comes_first "$ninja" "[--------------------] 2 of 4: preparing the build, 0 s gone"
holds shows_what_ninja_built "$ninja" "[##########----------] 2 of 4: building, 102 of 204, 0 s gone"
slow=$({ sleep 1.5; echo 'exit 0'; } | moving ninja stage words)
[ "$(echo "$slow" | grep -c 'words, [0-9] s gone')" -ge 2 ]
report moves_by_itself_every_second $? "$slow"
case $ninja in *"done in"*) false ;; esac
report says_nothing_done_that_failed $? "$ninja"
most=$(COLUMNS=30 PRONY_PROGRESS=moves sh tools/progress ninja stage 'words that need more than thirty columns' 2>&1 </dev/null |
    tr '\r' '\n' | sed 's/^.\[K//' | wc -L)
[ "$most" -eq 29 ]
report stays_within_the_line $? "found a line of $most, expected 29 of 30 columns"

plain=$(printf '%s\n' '[1/2] a' '[2/2] b' 'exit 0' | sh tools/progress ninja "2 of 4" building 2>&1)
[ "$plain" = "2 of 4: building" ]
report says_one_line_in_a_pipe $? "$plain"
printf '%s\n' '[1/2] a' 'exit 7' | sh tools/progress ninja stage building 2>/dev/null
[ $? -eq 7 ]
report passes_the_status_on $?
sh tools/progress ninja stage building "$folder/log" 2>/dev/null <<'END'
[1/2] a
END
[ $? -eq 130 ] && [ "$(cat "$folder/log")" = "[1/2] a" ]
report sees_what_was_stopped $? "$(cat "$folder/log")"
expect refuses_other_programs 2 "usage: tools/progress apt|ninja" sh tools/progress tar stage words

# A tree of its own with a prony that has been built. What it does is in $1 of `pretend`.
pretend() {
    rm -rf "$folder/tree"
    mkdir -p "$folder/tree/tools" "$folder/tree/build" "$folder/tree/src/guide/ui/node_modules"
    cp tools/start tools/progress "$folder/tree/tools"
    printf 'all:\n\t@echo "[1/2] a"; echo "[2/2] b"\n' >"$folder/tree/Makefile"
    printf '%s\n' '#!/bin/sh' 'case $1 in plan) echo "14 287 612 130" ;; *) echo setup done ;; esac' \
        >"$folder/tree/tools/setup"
    cat >"$folder/tree/build/prony" <<'PRONY'
#!/bin/sh
result='{"prony":1,"kind":"result","point":{"framework":"prony","model":"large","phase":"training","batch":10,"threads":1},"status":"ok","result":{"throughput":1310.5}}'
command=$1
[ $# -eq 0 ] || shift
PRONY
    printf '%s\n' "$1" >>"$folder/tree/build/prony"
    chmod +x "$folder/tree/tools/setup" "$folder/tree/build/prony"
}
serves='case $command in
    guide)
        trap "echo closed >closed; exit 0" TERM INT
        echo "The guide is at http://localhost:4711/ with the results."
        while :; do sleep 0.1; done ;;
    suite)
        case $* in *start.jsonl*) echo "$result" >>build/start.jsonl ;; esac
        sleep 0.3; echo "$result"; sleep 0.6; echo "$result"; echo suite ended >&2 ;;
    answer) echo "the summary" ;;
    query) echo "the chart" ;;
    esac'

# start: until it serves, then Ctrl-C; what it said, a status at the end.
start() {
    rm -f "$folder/said" # of the start before
    (cd "$folder/tree" && exec env -u WAYLAND_DISPLAY DISPLAY="$desktop" setsid sh tools/start) >"$folder/said" 2>&1 &
    process=$!
    await "$1" "$folder/said"
    kill -s TERM -- "-$process" 2>/dev/null
    wait "$process"
    echo "status $?" >>"$folder/said"
    cat "$folder/said"
}

pretend "$serves"
said=$(start 'The charts: ')
holds says_what_it_downloads "$said" "287 Debian packages, 612 MB to download: about 2 min"
holds serves_before_it_has_measured "$said" "The first results: http://localhost:4711/ (the page fills while it measures)
suite ended"
holds says_what_it_added "$said" "Measured: 2 results in "
holds ends_with_the_summary_and_the_page "$said" "the summary

The charts: http://localhost:4711/ (Ctrl-C stops the page; the results are kept)"
holds ctrl_c_closes_the_page "$said" "The page is closed."
await closed "$folder/tree/closed"
[ -f "$folder/tree/closed" ]
report ctrl_c_leaves_no_server $?

# A second start with nothing left to be measured; a desktop sees the page once all the same.
pretend "case \$command in suite) exit 0 ;; esac; $serves"
mkdir "$folder/bin"
printf '#!/bin/sh\necho "opened $*" >>"%s/opened"\n' "$folder" >"$folder/bin/xdg-open"
chmod +x "$folder/bin/xdg-open"
said=$(desktop=:0 PATH=$folder/bin:$PATH start 'The charts: ')
holds a_second_start_says_what_it_adds "$said" "No result was added to build/start.db."
await opened "$folder/opened"
[ "$(cat "$folder/opened")" = "opened http://localhost:4711/" ]
report a_second_start_opens_the_page $? "$said"

pretend "case \$command in suite) sleep 5 & wait ;; esac; $serves"
said=$(start '3 of 4: measuring')
holds ctrl_c_while_it_measures "$said" "Stopped. The next make start goes on from here.
status 130"

pretend "case \$command in guide) echo 'prony: no page'; exit 1 ;; esac; $serves"
holds without_a_page_it_draws_a_chart "$(start 'No page is served: no page')" "the chart
No page is served: no page"

pretend "case \$command in store) echo 'prony: no SQLite'; exit 1 ;; esac; $serves"
holds without_a_store_it_draws_bars "$(start 'No page is served')" "Training the large network, samples a second:

  prony       batch 10  1 thread       1310 ########################################

The records are in build/start.jsonl. No page is served: no SQLite"
exit $status
