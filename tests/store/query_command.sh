# prony query and the store's care, as a person uses them; figures beside those that SQL gives.

suite=query_command
. tests/shell/command.sh

db=$folder/store.db
store="--store $db"

if "$prony" query --x batch 2>&1 | grep -q 'needs SQLite'; then
    says says_what_to_install libsqlite3-0 "$prony" query
    exit $status
fi
tools/make-records 400 8 >"$folder/made.jsonl"
"$prony" store create --empty $store
"$prony" store add "$folder/made.jsonl" $store >/dev/null
says aligned 'framework    batch  samples/s ' "$prony" query --where model=large --group-by framework $store
says draws_lines '+--' "$prony" query --where model=large --group-by framework $store
says figures_are_grouped '1,494 ' "$prony" query --where model=large --draw none $store
says rates_have_units ' GB/s' "$prony" query --y byte_rate --where model=vgg16 --aggregate best --draw none $store
says draws_bars '###' "$prony" query --x framework --y times_floor --aggregate best $store
case $("$prony" query --where '' --draw none $store) in *+--*) held=1 ;; *results*) held=0 ;; *) held=1 ;; esac
report draws_nothing_more $held 'found a drawing, or no table'
says says_that_an_axis_is_logarithmic 'batch, log scale' "$prony" query --log xy $store
says draws_dots_on_a_log_scale '..o ' "$prony" query --x framework --where '' --log y $store
says refuses_another_scale 'expected x, y, xy, none or auto' "$prony" query --log z $store
says markdown '| batch | throughput |' "$prony" query --format md $store
says json '"points":[{"group":[],"x":1,' "$prony" query --where '' --format json $store
says narrows_what_nobody_narrowed "only --where 'source=own server=" "$prony" query --draw none $store
says narrows_to_one_network '"results":' "$prony" query --format json $store
says all_can_be_asked_for 'mixes framework, backend, model' "$prony" query --where '' --draw none $store
case $("$prony" query --draw none $store) in *mixes*) held=1 ;; *samples/s*) held=0 ;; *) held=1 ;; esac
report a_first_query_mixes_nothing $held "$("$prony" query --draw none $store)"
says leaves_open_what_is_spread_out ' phase=training unit=gpu precision=fp32' "$prony" query --x model --draw none $store
says baseline 'speed-up' "$prony" query --x batch --baseline batch=1 $store
says says_what_is_mixed 'mixes framework' "$prony" query --where model=large $store
says refuses_an_axis 'did you mean "batch"' "$prony" query --x bacth $store
says lists_axes 'expected an axis: framework, backend, model' "$prony" query --x zzz $store
says lists_metrics 'expected a metric: time_median, time_min' "$prony" query --y zzz $store
says help_lists_them 'Axes: framework, backend,' "$prony" query --help
says refuses_a_metric 'did you mean "throughput"' "$prony" query --y througput $store
says refuses_a_baseline 'expected x or an axis of the groups' \
    "$prony" query --baseline model=large $store
says refuses_a_batch 'batch: found "ten", expected a whole number' "$prony" query --where batch=ten $store
says refuses_lines_over_names 'which is no number' "$prony" query --x model --draw line $store
says refuses_how 'expected best, min, max' "$prony" query --aggregate sum $store
says says_there_is_nothing 'no valid result' "$prony" query --where model=none $store

# The same figures as SQL, over every row of a grouped chart.
"$prony" query --x batch --y throughput --group-by framework --aggregate max \
    --where 'phase=training unit=cpu' --format csv $store | sed 1d | cut -d, -f1,2,3,6 >"$folder/ours"
python3 - "$db" >"$folder/theirs" <<'END'
import sqlite3
import sys
for row in sqlite3.connect(sys.argv[1]).execute(
        "SELECT framework, batch, max(throughput), count(*) FROM result WHERE status = 'ok' AND "
        "phase = 'training' AND unit = 'cpu' GROUP BY 1, 2 ORDER BY 1, 2"):
    print("%s,%d,%.17g,%d" % row)
END
if [ -s "$folder/ours" ] && cmp "$folder/ours" "$folder/theirs"; then
    echo "ok   query_command.figures_are_those_of_sql"
else
    echo "FAIL query_command.figures_are_those_of_sql"
    status=1
fi

"$prony" store create --empty --store "$folder/other.db"
says merges '400 added, 0 there already' "$prony" store merge "$db" --store "$folder/other.db"
says removes '1 removed' "$prony" store remove 7 $store
says removes_by_filters 'removed' "$prony" store remove --where model=large $store
says what_is_removed_is_gone 'no valid result' "$prony" query --where model=large $store
says removes_nothing_by_mistake 'expected numbers' "$prony" store remove $store
says checks 'all whole' "$prony" store check $store
says gives_room_back '' "$prony" store vacuum $store
says makes_no_store_to_remove_from 'no store here yet' \
    "$prony" store remove 1 --store "$folder/none.db"
says has_what_ships 'records, all whole' sh -c \
    "'$prony' store create --store '$folder/new.db' && '$prony' store check --store '$folder/new.db'"
says answers_from_the_store 'next     ' "$prony" answer resnet50 --minutes 0 $store --phase training
printf 'input 4\ndense 3\n' >"$folder/mine.net"
sed -n 's/.*"program":"\([0-9a-f]*\)".*/\1/p' >"$folder/program" <<EOF
$("$prony" bench "$folder/mine.net" --phase inference --seconds 0.01 --format json $store)
EOF
says remembers_what_was_computed '1 ' "$prony" query --where program="$(head -n 1 "$folder/program")" $store
says answers_of_a_file 'next   ' "$prony" answer "$folder/mine.net" --minutes 0 $store --phase inference
printf 'input 40\ndense 3\n' >"$folder/mine.net"
says another_network_of_that_name_has_no_answer 'no result' \
    "$prony" answer "$folder/mine.net" --minutes 0 $store --phase inference
says answers_of_one_unit ' on the GPU (NVIDIA' \
    "$prony" answer large --minutes 0 --store "$folder/new.db" --unit gpu
if [ -e /dev/nvidiactl ]; then # elsewhere none is suggested: answers.sh
    says answers_for_a_gpu ' --unit gpu' sh -c \
        "COLUMNS=200 '$prony' answer large --minutes 0 --store '$folder/new.db' --unit gpu | grep '^try '"
else
    echo "skip query_command.answers_for_a_gpu: there is no GPU"
fi
says answers_by_calls ' a call, ' sh -c "
    '$prony' bench small --phase inference --scenario single-stream --seconds 0.01 \
        --store '$folder/calls.db' >'$folder/calls.txt' &&
    '$prony' answer small --phase inference --minutes 0 --store '$folder/calls.db'"
says answers_of_the_other ' on the CPU' \
    "$prony" answer large --minutes 0 --store "$folder/new.db" --unit cpu

# Where there is no result, the command that adds some can be copied as it is.
mkdir "$folder/my nets"
printf 'input 4\ndense 3\n' >"$folder/my nets/it's, mine.net"
found=$("$prony" answer "$folder/my nets/it's, mine.net" --minutes 0 --store "$folder/new.db" 2>&1)
holds says_what_there_is_no_result_of "$found" "it's, mine.net with phase training yet; to add some: prony bench "
(prony() { "$PRONY_BUILD/prony" "$@" --seconds 0.05; } && eval "${found#*to add some: }") >"$folder/copied" 2>&1
says adds_what_it_lacked 'next   ' "$prony" answer "$folder/my nets/it's, mine.net" --minutes 0 --store "$folder/new.db"
says knows_no_such_network "there is no network 'nosuch'" "$prony" answer nosuch --minutes 0 --store "$folder/new.db"
exit $status
