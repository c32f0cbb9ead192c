# prony bench and prony machine, as a person uses them.

suite=cli_bench
. tests/shell/command.sh

quick="--seconds 0.1"
expect helps 0 'prony bench small large --phase training,inference' "$prony" bench --help
expect prints_a_table 0 'samples/s' "$prony" bench small $quick
# Batches are no rivals, whichever makes more samples a second.
expect ranks_only_like_with_like 0 "; 2 results (prony" "$prony" bench small --batch 1,2 --backend ref $quick
expect checks_what_it_times 0 'correct' "$prony" bench small --phase training,inference $quick
expect has_a_flag_for_every_axis 0 '--scenario' "$prony" bench --help all
expect helps_with_few_flags_first 0 'more: prony bench --help all' "$prony" help bench
if ! "$prony" bench small --unit gpu --seconds 0.01 2>&1 | grep -q 'correct'; then # without a GPU
    expect offers_no_precision_of_a_gpu 1 '--precision tf32: only backends of a GPU compute in it: ' \
        "$prony" bench small --precision tf32,fp16 --batch 1-64*2 $quick
    [ "$(printf '%s\n' "$output" | wc -l)" -eq 2 ]
    report says_so_in_a_line_each $? "$output"
    expect measures_the_precision_it_has 0 'correct' "$prony" bench small --precision tf32,fp32 $quick
fi
expect explains_a_skip 0 'computes in fp32, bf16 and int8, not in fp16' \
    "$prony" bench small --framework prony,python-list --backend simd --precision fp16 $quick
expect does_not_pretend_to_have_threads 0 'skipped: the backend ref makes 1 thread, not 2' \
    "$prony" bench small --backend ref --threads 1,2 $quick
expect picks_a_backend_by_unit 0 '"unit":"cpu"' "$prony" bench small --unit cpu --format json $quick
expect says_that_no_backend_is_there 0 'skipped: no backend computes on tpu here' \
    "$prony" bench small --unit tpu $quick
expect does_not_replace_the_unit 0 'skipped: the backend ref computes on cpu, not on gpu' \
    "$prony" bench small --backend ref --unit gpu $quick
expect asks_for_the_unit_before_anything_is_made 0 'skipped: the backend ref computes on cpu, not on gpu' \
    "$prony" bench mlp:4-2000000-2000000-1 --backend ref --unit gpu $quick
expect says_what_no_memory_holds 1 'failed: out of memory: with ' \
    "$prony" bench mlp:4-2000000-2000000-1 --backend ref $quick
expect writes_csv 0 'framework,backend,model' "$prony" bench small --format csv $quick
expect writes_markdown 0 '| ' "$prony" bench small --batch 1,3 --format md $quick
for value in foo ''; do
    expect "names_the_blas_that_is_no_blas_$value" 0 \
        "skipped: PRONY_BLAS is '$value', expected openblas or blis;" \
        env PRONY_BLAS="$value" "$prony" bench small --backend blas $quick
done

expect trains_by_another_optimiser 0 '"verdict":"right"' \
    "$prony" bench small --optimiser adam --format json $quick
expect takes_the_optimiser_of_the_network 0 '"optimiser":"momentum"' \
    sh -c "printf 'input 4\ndense 1\noptimiser momentum\n' >'$folder/own.net' &&
           '$prony' bench '$folder/own.net' --format json $quick"
expect knows_its_optimisers 2 "there is no optimiser 'adm'" "$prony" bench small --optimiser adm
expect asks_a_peer_for_its_backend 0 'skipped: this peer has no backend blis: it has one only' \
    "$prony" bench small --framework python-list --backend blis $quick
expect takes_its_own_backend_beside_a_peer 0 'python-list' \
    "$prony" bench small --framework prony,python-list --backend ref $quick

expect takes_networks_as_a_list 0 'mlp:2-3-1' "$prony" bench small,mlp:2-3-1 $quick
expect wants_a_network 2 'NETWORK' "$prony" bench
expect knows_its_networks 2 'small' "$prony" bench smal
expect knows_its_frameworks 2 'did you mean numpy?' "$prony" bench small --framework numpi
expect knows_its_backends 2 'reff' "$prony" bench small --backend reff
expect wants_numbers 2 'batch' "$prony" bench small --batch 1,two
expect refuses_batch_0 2 'batch' "$prony" bench small --batch 0
expect refuses_a_batch_beyond_32_bits 2 'expected at most' "$prony" bench small --batch 100000000000
expect refuses_an_empty_value 2 'expected values with a comma' "$prony" bench small --batch 1,
expect suggests_a_flag 2 'did you mean --batch' "$prony" bench small --bacth 3
expect knows_its_formats 2 'expected table, json, csv, md, tests or ingestion' "$prony" bench small --format xml
expect names_what_it_compares_with 2 'expected one of its backends' \
    "$prony" bench small --against prony
for format in table json csv md tests; do
    expect "says_when_a_${format}_is_lost" 1 'cannot write to standard output' \
        sh -c "'$prony' bench small --format $format $quick 2>&1 >/dev/full"
done
for format in table csv md tests; do
    output=$("$prony" bench small --format $format --out /dev/full $quick 2>/dev/null)
    [ $? = 1 ] && echo "$output" | grep -q small && echo "$output" | grep -qE 'right|correct'
    report "prints_as_${format}_what_a_full_disk_does_not_take" $? "$output"
done
expect says_what_it_cannot_write 1 'nowhere/out.jsonl' \
    "$prony" bench small --out "$folder/nowhere/out.jsonl" $quick
echo 'small --seconds 0.1' >"$folder/prose"
expect adds_records_to_records_only 2 'found a file of another kind, expected records: ' \
    "$prony" bench small --out "$folder/prose" $quick
[ "$(cat "$folder/prose")" = 'small --seconds 0.1' ]
report leaves_other_files_as_they_are $? "$(cat "$folder/prose")"
[ -z "$("$prony" bench small --out "$folder/nowhere/out.jsonl" --format json $quick 2>/dev/null)" ]
report tries_the_file_before_it_measures $? "it measured first"
[ "$("$prony" bench small small --batch 1,1-1,01 --format json $quick 2>/dev/null |
    grep -c '"kind":"result"')" = 1 ]
report measures_what_is_named_twice_once $? "small at batch 1 was measured several times"

# With --format json standard output is records and nothing else, the same as in the file.
"$prony" bench small --framework prony,python-list --batch 1,3 --format json $quick \
    --out "$folder/out.jsonl" >"$folder/stdout.jsonl" 2>/dev/null
cmp "$folder/out.jsonl" "$folder/stdout.jsonl"
report prints_what_it_files $? "standard output and --out differ"
networks() { grep -c '"kind":"network"' "$folder/out.jsonl"; }
before=$(networks)
"$prony" bench small --batch 1,3 $quick --out "$folder/out.jsonl" >/dev/null 2>&1
[ "$before $(networks)" = "2 2" ]
report explains_a_network_once_a_file $? "$(cut -c1-100 "$folder/out.jsonl")"
# … and a machine, unless its ceilings were seen higher since: here nothing is looked for, and nothing can
# be seen higher.
kept() {
    XDG_CACHE_HOME=$folder/cache "$prony" bench small --batch 1,3 $quick --out "$1" >/dev/null 2>&1
}
kept "$folder/first.jsonl"
[ ! -f "$folder/cache/prony/calibration.json" ] || # of a build that cannot calibrate
    sed -i 's/"spent_ns":[^,}]*/"spent_ns":1e12/g; s/"per_s":[^,}]*/"per_s":1e15/g' \
        "$folder/cache/prony/calibration.json"
kept "$folder/machine.jsonl"
kept "$folder/machine.jsonl"
[ "$(grep -c '"kind":"machine"' "$folder/machine.jsonl")" = 1 ]
report describes_the_machine_once_a_file $? "$(cut -c1-100 "$folder/machine.jsonl")"
if command -v python3 >/dev/null; then
    python3 - "$folder/stdout.jsonl" <<'PYTHON'
import json, sys
records = [json.loads(line) for line in open(sys.argv[1])]
results = [r for r in records if r["kind"] == "result"]
assert [r["kind"] for r in records][-1] == "machine", "the last line is the machine"
networks = [r["network"]["program"] for r in records if r["kind"] == "network"]
assert networks == sorted(set(r["program"] for r in results), key=networks.index), networks
assert len(networks) == 2, networks
assert len(results) == 4, f"{len(results)} results"
for r in results:
    assert r["status"] == "ok", r.get("reason")
    assert r["result"]["check"]["verdict"] == "right", r["result"]["check"]
    assert r["result"]["time_ns"]["count"] >= 1 and r["samples_ns"]
assert results[0]["point"]["framework"] == "prony" and results[1]["point"]["framework"] == "python-list"
assert results[0]["result"]["time_ns"]["median"] < results[1]["result"]["time_ns"]["median"]
PYTHON
    report writes_lines_that_parse $? "see above"
else
    echo "skip cli_bench.writes_lines_that_parse: no python3"
fi

# Stopped in the middle, it ends soon and keeps what was finished.
"$prony" bench large --batch 1,2,3,4,5,6,7,8 --phase training,inference --seconds 2 \
    --out "$folder/stopped.jsonl" >"$folder/stopped.txt" 2>&1 &
bench=$!
await '"kind":"result"' "$folder/stopped.jsonl"
kill -INT $bench
wait $bench
[ $? -eq 130 ]
report stops_when_asked $? "$(cat "$folder/stopped.txt")"
case $(tail -n 1 "$folder/stopped.txt") in *': stopped') true ;; *) false ;; esac
report says_that_it_was_stopped $? "$(cat "$folder/stopped.txt")"
grep -q '"kind":"machine"' "$folder/stopped.jsonl"
report keeps_what_it_had $? "$(cat "$folder/stopped.txt")"

# Activations that are computed again: an axis, both ways in turns, and both right.
found=$("$prony" bench examples/transformer.net --phase training --batch 8 --backend simd --recompute off,on \
    --format json --seconds 0.2 2>&1)
[ "$(echo "$found" | grep -c '"verdict":"right"')" -eq 2 ] &&
    [ "$(echo "$found" | grep -c '"recompute":"on"')" -eq 1 ]
report recomputes_in_turns $? "$found"

# So it does with queries: whoever has answered its own is done, whatever becomes of the next.
"$prony" bench small --phase inference --scenario single-stream --backend ref,simd --fusion on,off \
    --isa scalar,avx2,avx512 --seconds 1 --out "$folder/queries.jsonl" >"$folder/queries.txt" 2>&1 &
bench=$!
await '"kind":"result"' "$folder/queries.jsonl"
kill -INT $bench
wait $bench
[ $? -eq 130 ] && grep -q '"kind":"machine"' "$folder/queries.jsonl"
report keeps_who_answered_its_queries $? "$(cat "$folder/queries.txt")"

# A suite's unit is that of the lines which do not say where they run.
echo 'small --seconds 0.02' >"$folder/unit.suite"
echo 'small --backend ref --seconds 0.02' >"$folder/backend.suite"
expect suite_takes_a_unit 0 'no backend computes on moon here' "$prony" suite "$folder/unit.suite" --unit moon
expect suite_leaves_a_backend 0 'prony/ref' "$prony" suite "$folder/backend.suite" --unit moon

# A suite: every line is looked at first; what is done is not done again.
printf '%s\n' '  # a comment' '--format csv' '' \
    "small --batch 1-4*2 --skip 'batch=2' --seconds 0.05" 'small --phase inference --seconds 0.05' \
    >"$folder/own.suite"
expect runs_a_suite 0 'framework,backend,model' \
    "$prony" suite "$folder/own.suite" --out "$folder/suite.jsonl"
[ "$(grep -c '"kind":"result"' "$folder/suite.jsonl")" -eq 3 ]
report measures_every_line $? "$(cut -c1-300 "$folder/suite.jsonl")"
expect does_nothing_twice 0 'nothing is left to be measured' \
    "$prony" suite "$folder/own.suite" --out "$folder/suite.jsonl"
printf '{"prony":1,"kind":"result","point":{"fra' >>"$folder/suite.jsonl" # killed while it wrote
expect passes_over_a_cut_line 0 'cut short is passed over' \
    "$prony" suite "$folder/own.suite" --out "$folder/suite.jsonl"
cut=$(sed -n '/"kind":"result"/p' "$folder/suite.jsonl" | head -n 1)
{
    sed '$d' "$folder/suite.jsonl"
    printf '%s' "${cut%%,\"status\"*}" # its last byte is the point's '}'
} >"$folder/cut.jsonl"
expect compares_what_is_whole 0 'cut short is passed over' \
    "$prony" compare "$folder/cut.jsonl" "$folder/cut.jsonl"
sed -i '$d' "$folder/suite.jsonl"
sed -i 2d "$folder/suite.jsonl"
"$prony" suite "$folder/own.suite" --out "$folder/suite.jsonl" >/dev/null 2>&1
[ "$(grep -c '"kind":"result"' "$folder/suite.jsonl")" -eq 3 ]
report goes_on_where_it_was $? "$(cut -c1-300 "$folder/suite.jsonl")"
# Killed outright it has lost nothing that was finished, and the next run does the rest.
printf '%s\n' 'small --batch 1-50 --seconds 0.2' >"$folder/killed.suite"
"$prony" suite "$folder/killed.suite" --out "$folder/killed.jsonl" >/dev/null 2>&1 &
killed=$!
await '"kind":"result"' "$folder/killed.jsonl"
kill -KILL $killed
wait $killed 2>/dev/null
before=$(grep -c '"kind":"result"' "$folder/killed.jsonl")
"$prony" suite "$folder/killed.suite" --seconds 0.02 --out "$folder/killed.jsonl" >/dev/null 2>&1
after=$(grep -c '"kind":"result"' "$folder/killed.jsonl")
[ "$before" -lt 50 ] && [ "$after" -eq 50 ]
report resumes_when_killed $? "$before before, $after after"
echo 'small --bacth 3' >>"$folder/own.suite"
expect names_the_line 2 'own.suite:6: ' "$prony" suite "$folder/own.suite"
printf '\nsmall --seconds 0.05\nsmal --seconds 0.05\n' >"$folder/typo.suite"
expect names_the_line_of_an_unknown_network 2 'typo.suite:3: ' "$prony" suite "$folder/typo.suite"
printf 'small --seconds 0.05\n\0small --batch 3 --seconds 0.05\n' >"$folder/nul.suite"
expect reads_text_only 2 'found byte 0x00' "$prony" suite "$folder/nul.suite"
expect knows_its_suites 2 "did you mean 'demo'?" "$prony" suite dmo
expect names_its_suites 0 'batch, choosing, demo' "$prony" suite --help
expect ships_suites 2 'one that prony suites lists' "$prony" suite nothing-of-the-kind
expect numbers_tests 0 '| 1 | small, training, batch 1: prony ref on CPU | time taken for training=' \
    "$prony" bench small --backend ref --format tests $quick
expect times_whole_trainings 0 's: 80 epochs of 120 rows, an iteration ' \
    "$prony" bench small --backend ref --format tests $quick
expect tells_what_was_learnt 0 '%: small to accuracy 0.9 on held-out rows of iris: 3 of 3 seeds' \
    "$prony" bench small --batch 3 --dataset iris --until accuracy=0.9 --format tests
expect says_what_is_not_checked 0 'measured once' \
    "$prony" bench large --batch 3 --backend ref --seconds 0.01 --patience 0.1
expect says_why_it_is_not_checked 0 ', and --patience is 0.1 s' \
    "$prony" bench large --batch 64 --backend ref --seconds 0.01 --patience 0.1
expect says_no_time_of_nothing 1 '' sh -c \
    '"$1" bench large --phase inference --batch 256 --seconds 0.01 --patience 0.1 | grep "would take 0 "' - "$prony"

# Where samples lie, how they come, and from where on a GPU is worth it.
expect reads_samples_from_a_file 0 'correct' "$prony" bench small --data real/dram,real/cache $quick
expect leaves_samples_where_they_lie 0 'skipped: a CPU needs --ingestion resident' \
    "$prony" bench small --ingestion pinned $quick
expect leaves_data_to_peers 0 'skipped: other frameworks are measured on data they hold' \
    "$prony" bench small --framework python-list --data real/dram $quick
expect tells_how_samples_came 0 '| small, training | cpu | real/dram | resident | 1 |' \
    "$prony" bench small --data real/dram --format ingestion $quick
"$prony" bench small --data real/dram --format ingestion $quick 2>/dev/null |
    awk -F'|' 'NR == 1 { columns = NF } NF != columns { wrong = 1 } END { exit wrong || NR != 3 }'
report fills_every_column_of_ingestion $? ''
expect refuses_launches_that_are_waited_for 0 'CUDA_LAUNCH_BLOCKING is set, ' \
    env CUDA_LAUNCH_BLOCKING=1 "$prony" bench small --framework python-list --unit gpu $quick
expect refuses_to_leave_kernels_out 0 'stack_warp_f32_cuda is left out: unset it' \
    env PRONY_CUDA_WITHOUT=stack_warp_f32_cuda "$prony" bench small --framework python-list \
    --unit gpu $quick
expect takes_launches_that_are_not 0 'this peer has no unit gpu' \
    env CUDA_LAUNCH_BLOCKING=0 "$prony" bench small --framework python-list --unit gpu $quick
expect wants_a_gpu_to_cross_over_to 1 'no backend computes on gpu here: ' \
    env CUDA_VISIBLE_DEVICES= "$prony" bench small --find-crossover
expect wants_a_network_before_that 2 'nosuch' env CUDA_VISIBLE_DEVICES= "$prony" bench nosuch --find-crossover
expect wants_a_batch_before_that 2 'batch' env CUDA_VISIBLE_DEVICES= "$prony" bench small --find-crossover --batch 0
expect crosses_over_between_units 2 'leave out --against' \
    "$prony" bench small --find-crossover --against ref
expect calibrates_what_is_there 1 'no backend computes on gpu here: ' \
    env CUDA_VISIBLE_DEVICES= "$prony" machine --calibrate --unit gpu
expect looks_at_a_unit_to_calibrate_it 2 'prony machine --calibrate --unit gpu' \
    "$prony" machine --unit gpu

# Kernels by themselves.
kernels="bench --kernels sgd activate --seconds 0.02"
expect times_kernels 0 'sgd_f32_ref' "$prony" $kernels
expect checks_kernels 0 ',right,' "$prony" $kernels --backend ref --format csv
expect knows_no_wrong_kernel 0 '' "$prony" bench --kernels dense adam --backend simd,ref --seconds 0.02
expect writes_kernels_as_markdown 0 '| sgd | *=13x77 | ref | 1 |' "$prony" $kernels --format md
expect times_kernels_on_threads 0 'skipped: the backend ref makes 1 thread, not 2' \
    "$prony" $kernels --backend ref --threads 1,2
expect knows_its_ops 2 "did you mean 'dense'?" "$prony" bench --kernels dens
expect says_what_cannot_run_alone 2 "no op 'clip' with a case" "$prony" bench --kernels clip
expect times_kernels_only 2 'found --batch' "$prony" $kernels --batch 3
expect knows_its_formats_of_kernels 2 'expected table, json, csv or md' "$prony" $kernels --format tests
expect knows_its_backends_of_kernels 2 'reff' "$prony" $kernels --backend reff
if command -v python3 >/dev/null; then
    "$prony" $kernels --backend ref --format json >"$folder/kernels.jsonl"
    python3 - "$folder/kernels.jsonl" <<'PYTHON'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
ops = [r["op"] for r in rows]
assert set(ops) == {"sgd", "activate"} and ops.index("sgd") in (0, ops.count("activate")), ops
for r in rows:
    assert r["check"] == "right" and r["error"] < 1e-5, r
    assert r["low_ns"] is None or r["low_ns"] <= r["ns"] <= r["high_ns"], r
    assert r["bytes"] > 0 and r["kernel"].endswith("_f32_ref"), r
PYTHON
    report writes_kernels_that_parse $? "$(cut -c1-300 "$folder/kernels.jsonl")"
fi
"$prony" bench --kernels --seconds 1 >"$folder/kernels.txt" 2>&1 &
bench=$!
await dense "$folder/kernels.txt"
kill -INT $bench
wait $bench
[ $? -eq 130 ]
report stops_between_kernels $? "$(cat "$folder/kernels.txt")"

# Scenarios, and training to a target.
expect streams 0 'correct' "$prony" bench small --phase inference --scenario single-stream,offline $quick
# Through the library, beside the engine: in turns, and checked.
expect asks_through_the_library 0 'library  ' "$prony" bench small --phase inference \
    --scenario single-stream --through engine,library $quick
expect says_which_way_is_faster 0 ' × its time (' \
    "$prony" bench small --backend simd --phase inference --scenario single-stream \
    --through library --against engine --seconds 0.5
expect says_that_there_were_no_turns 0 'no verdict beside prony/simd (0 rounds are too few)' \
    "$prony" bench small --backend simd --phase inference --scenario queued --through library \
    --against engine $quick
expect checks_the_library_s_answers 0 '"verdict":"right"' "$prony" bench lenet --phase inference \
    --scenario queued --through library --format json $quick
# It names the kernels that the engine names, also where it prepares the inputs itself.
printf 'input 6 tokens=8\nembedding 5\nflatten\ndense 8\n' >"$folder/tokens.net"
for way in engine library; do
    "$prony" bench "$folder/tokens.net" --backend simd --phase inference --scenario single-stream \
        --through $way --format json $quick | grep -o '"kernels":\[[^]]*\]' >"$folder/$way.kernels"
done
grep -q '\["' "$folder/engine.kernels" && cmp -s "$folder/engine.kernels" "$folder/library.kernels"
report names_the_library_s_kernels $? "$(cat "$folder/engine.kernels" "$folder/library.kernels")"
expect tells_the_ways_apart 0 '"through":"library"' "$prony" bench small --phase inference \
    --through library --format json $quick
expect asks_the_library_for_calls 0 'skipped: --through library has no scenario offline' "$prony" bench small \
    --phase inference --scenario offline --through library $quick
expect asks_the_library_for_predictions 0 'skipped: --through library needs --phase inference' \
    "$prony" bench small --through library $quick
expect leaves_the_choice_to_the_library 0 'skipped: the library chooses by itself' \
    "$prony" bench small --phase inference --through library --fusion off $quick
expect serves 0 'queries a second hold the bound' "$prony" bench small --phase inference \
    --scenario server --bound p99=10s --seconds 1
expect says_what_cannot_be_held 0 'skipped: no rate holds the bound' "$prony" bench large \
    --phase inference --scenario server --bound p90=1ns $quick
expect wants_a_bound 0 '--scenario server needs a bound' \
    "$prony" bench small --phase inference --scenario server $quick
expect wants_somebody_to_hold_a_bound 2 'needs --scenario server' \
    "$prony" bench small --bound p99=10ms
expect reads_bounds 2 'expected such as p99=10ms' "$prony" bench small --bound soon
expect streams_several 0 'skipped: --scenario multi-stream has several samples per query' \
    "$prony" bench small --phase inference --scenario multi-stream $quick
expect answers_by_inference 0 'needs --phase inference' \
    "$prony" bench small --scenario offline $quick
expect wants_patience_for_a_server 0 'skipped: a p99 needs 662 queries at each of 9 rates' \
    "$prony" bench large --phase inference --batch 16 --backend ref --scenario server --bound p99=5s \
    --patience 0.1 $quick
expect wants_seeds_of_something 2 '--seeds: expected --until with it' "$prony" bench small --seeds 2
expect wants_a_margin_of_something 2 '--margin: expected --against with it' \
    "$prony" bench small --margin 2%
expect trains_to_a_target 0 '2 of 2 seeds' \
    "$prony" bench small --until loss=10 --dataset iris --seeds 2 --batch 8
output=$("$prony" bench small --until loss=10 --dataset iris --seeds 2 --batch 8 --format json 2>/dev/null |
    grep '"kind":"result"')
echo "$output" | sed 's/.*"median":\([^,]*\),.*"throughput":\([^,]*\),.*/\1 \2/' |
    awk '{ samples = $1 * $2 / 1e9 } END { exit samples < 7.999 || samples > 8.001 }'
report agrees_on_time_and_throughput $? "$output"
expect says_when_nobody_got_there 0 '0 of 1 seeds' "$prony" bench small --until loss=0.0000001 \
    --dataset iris --seeds 1 --batch 8 --patience 0.2
expect wants_data_for_a_target 2 '--until and --dataset go together' \
    "$prony" bench small --until accuracy=0.95
expect wants_a_target_for_the_scenario 2 'expected --until' "$prony" bench small --scenario target
expect trains_in_no_int8 0 'skipped: int8 is for inference: --phase inference' \
    "$prony" bench small --precision int8
for axis in 'fusion off' 'caches cold' \
    'ingestion pinned' 'backend ref --threads 2'; do
    expect "trains_to_no_target_with_${axis%% *}" 0 'skipped: ' \
        "$prony" bench small --until loss=10 --dataset iris --seeds 1 --batch 8 --$axis
done
expect trains_no_batch_of_more_than_there_is 0 'skipped: a batch of 121 is more than the 120 rows' \
    "$prony" bench small --until loss=10 --dataset iris --seeds 1 --batch 121
expect counts_the_rows_there_are 0 ' 0 of 1 seeds' "$prony" bench small --until loss=0.0000001 \
    --dataset iris --seeds 1 --batch 100 --patience 0.2 --out "$folder/rows.jsonl"
! grep -q '"throughput":[0-9]\{9\}' "$folder/rows.jsonl" && ! grep -q ' nan ' "$folder/rows.jsonl"
report has_no_more_samples_than_rows $? "$(cut -c1-900 "$folder/rows.jsonl")"
expect reads_targets 2 'expected accuracy=0.95 or loss=0.1' \
    "$prony" bench small --until soon --dataset iris

# Whoever cannot be held in memory fails alone; a full disk loses nothing that was finished.
expect fails_alone_without_memory 1 '1 of 2 configurations failed' \
    sh -c "ulimit -v 4000000; '$prony' bench mlp:4-100000-100000-1 small --backend ref $quick"
# What is printed goes through a pipe, which no limit of files fills.
(
    ulimit -f 60 # blocks of 512 bytes, or of 1024
    trap '' XFSZ
    "$prony" bench small --batch 1,2,3,4,5,6,7,8 --seconds 0.02 --format json \
        --out "$folder/full.jsonl" 2>"$folder/full.txt"
    echo $? >"$folder/full.status"
) | cat >"$folder/printed.jsonl"
[ "$(cat "$folder/full.status")" -eq 1 ] && grep -q 'full.jsonl' "$folder/full.txt"
report says_when_the_disk_is_full $? "$(cat "$folder/full.txt")"
[ "$(grep -c '"kind":"result"' "$folder/printed.jsonl")" -ge 1 ] &&
    "$prony" compare "$folder/full.jsonl" "$folder/full.jsonl" >/dev/null
report keeps_whole_lines_on_a_full_disk $? "$(cut -c1-200 "$folder/full.jsonl")"

# Comparisons: in turns, and of two files.
expect compares_in_turns 0 'rounds' "$prony" bench small --against ref --seconds 0.3
expect compares_with_a_framework 0 'python-list' \
    "$prony" bench small --against python-list --seconds 0.3
expect compares_with_another_build 0 'rounds' "$prony" bench small --against "$prony" --seconds 0.3
expect checks_another_build 0 '"verdict":"right"' \
    "$prony" bench small --phase inference --framework "$prony" --format json $quick
expect answers_as_a_peer 0 '"reason":"found \"run\", expected prepare first"' \
    sh -c "echo '{\"do\":\"run\"}' | '$prony' peer"
[ "$("$prony" bench small --caches cold --format json --seconds 0.05 2>/dev/null |
    grep '"kind":"result"' | grep '"forward":null' | grep -c '"cycles":"not available: the counters would ')" = 1 ]
report counts_nothing_warm_of_cold_caches $? "$output"
expect empties_the_caches 0 'cold' "$prony" bench small --caches warm,cold --seconds 0.3
expect skips_an_opponent_that_is_not_there 0 'skipped: ' \
    env CUDA_VISIBLE_DEVICES= "$prony" bench small --against cuda $quick
expect leaves_out_an_opponent 0 'nothing is left to be measured' \
    "$prony" bench small --against ref --skip backend=ref $quick
expect says_what_it_cannot_pin 0 'skipped: other frameworks are not tied to cores' \
    "$prony" bench small --framework python-list --affinity compact $quick
expect knows_its_opponents 2 'did you mean numpy?' "$prony" bench small --against numpi
"$prony" bench small --batch 1,3 --seconds 0.05 --out "$folder/old.jsonl" >/dev/null 2>&1
expect compares_files 0 '2 configurations in both' "$prony" compare "$folder/old.jsonl" "$folder/old.jsonl"
if command -v python3 >/dev/null; then
    # measured records, with times that are known
    timed() { # FACTOR
        python3 - "$folder/old.jsonl" "$1" <<'PYTHON'
import json, sys
known = {"min": 990, "median": 1000, "mean": 1001, "ci_low": 998, "ci_high": 1002}
for line in open(sys.argv[1]):
    record = json.loads(line)
    if record["kind"] == "result":
        record["result"].pop("meters", None)  # what else ran meanwhile
        for key, value in known.items():
            record["result"]["time_ns"][key] = value * float(sys.argv[2])
    print(json.dumps(record))
PYTHON
    }
    timed 1.3 >"$folder/new.jsonl"
    timed 1 >"$folder/known.jsonl"
    mv "$folder/known.jsonl" "$folder/old.jsonl"
    expect fails_when_slower 1 '2 of 2 became slower by more than 5 %' \
        "$prony" compare "$folder/old.jsonl" "$folder/new.jsonl" --fail-if-slower 5%
    expect allows_what_is_allowed 0 'slower' \
        "$prony" compare "$folder/old.jsonl" "$folder/new.jsonl" --fail-if-slower 0.5
    sed 's/"ci_low": [0-9.]*, "ci_high": [0-9.]*/"ci_low": null, "ci_high": null/' "$folder/new.jsonl" \
        >"$folder/once.jsonl"
    expect fails_what_cannot_be_judged 1 '2 of 2 cannot be judged' \
        "$prony" compare "$folder/old.jsonl" "$folder/once.jsonl" --fail-if-slower 5%
    expect judges_nothing_without_a_limit 0 "can't tell" \
        "$prony" compare "$folder/old.jsonl" "$folder/once.jsonl"
    sed 's/"status": "ok"/"status": "failed"/' "$folder/old.jsonl" >"$folder/failed.jsonl"
    sed 's/"server": "[^"]*"/"server": "elsewhere"/' "$folder/old.jsonl" >"$folder/elsewhere.jsonl"
    expect sees_what_fails_now 1 '2 of 2 failed, and did not before' \
        "$prony" compare "$folder/old.jsonl" "$folder/failed.jsonl" --fail-if-slower 5%
    grep -v '"batch": 3' "$folder/old.jsonl" >"$folder/fewer.jsonl"
    expect sees_what_is_gone 1 'measured before, not now: small training, batch 3' \
        "$prony" compare "$folder/old.jsonl" "$folder/fewer.jsonl" --fail-if-slower 5%
    expect allows_fewer_without_a_limit 0 '1 configuration in both; 1 only in the old file' \
        "$prony" compare "$folder/old.jsonl" "$folder/fewer.jsonl"
    expect tells_machines_apart 2 'the new one of elsewhere' \
        "$prony" compare "$folder/old.jsonl" "$folder/elsewhere.jsonl"
    expect sees_what_is_faster 0 'faster' \
        "$prony" compare "$folder/new.jsonl" "$folder/old.jsonl" --fail-if-slower 5%
fi
expect stops_what_is_slower 1 '1 of 1 ' \
    "$prony" bench small --backend ref --against simd --seconds 0.3 --fail-if-slower 5%
expect needs_something_to_be_slower_than 2 'add --against NAME' "$prony" bench small --fail-if-slower 5%
echo '{"results":[{"command":"true","times":[0.2,0.21]}]}' >"$folder/hyperfine.json"
expect compares_what_others_measured 0 '1 configuration in both' \
    "$prony" compare "$folder/hyperfine.json" "$folder/hyperfine.json"
printf '{"context":{},"benchmarks":[{"name":"a","real_time":1},{"na' >"$folder/google.json"
expect tells_a_cut_file_of_others_from_a_cut_line 2 'google.json:1:' \
    "$prony" compare "$folder/google.json" "$folder/google.json"
expect compares_something 2 'nothing was compared' "$prony" compare "$folder/old.jsonl" "$folder/stopped.jsonl"
for share in 5 much; do
    expect "refuses_a_share_of_$share" 2 'expected a share such as 5%' \
        "$prony" compare "$folder/old.jsonl" "$folder/old.jsonl" --fail-if-slower $share
done
expect tells_no_file_from_slower 2 'nothing was compared: ' \
    "$prony" compare "$folder/old.jsonl" "$folder/nowhere.jsonl" --fail-if-slower 5%

expect describes_the_machine 0 'backends' "$prony" machine
expect tells_what_it_can_do_at_best 0 'at best, as far as seen' "$prony" machine
expect lists_the_meters 0 'cpu_utilisation' "$prony" machine
export XDG_CACHE_HOME="$folder/cache"
expect names_the_machine 0 'lab server 3' "$prony" machine --name 'lab server 3'
says shows_its_name 'lab server 3' "$prony" machine
"$prony" bench small --batch 1 --backend ref --seconds 0.01 --out "$folder/named.jsonl" >/dev/null 2>&1
holds records_carry_it "$(grep '"kind":"result"' "$folder/named.jsonl")" '"title":"lab server 3"'
expect refuses_a_name_that_moves_the_cursor 2 'without control characters' \
    "$prony" machine --name "$(printf 'a\033[2J')"
expect refuses_a_name_beside_json 2 '--name takes no other flag' "$prony" machine --name x --json
expect forgets_its_name 0 'call this machine: ' "$prony" machine --name ''
case $("$prony" machine) in *'lab server 3'*) false ;; esac
report has_no_name_left $?
expect explains_a_term 0 'arithmetic intensity' "$prony" glossary roofline
expect explains_a_term_of_two_words 0 'one worker' "$prony" glossary replica batch
expect helps_with_a_term 0 'Joules' "$prony" help energy
expect lists_all_terms 0 'multiply-add' "$prony" glossary
expect knows_what_is_meant 2 'did you mean "floor"' "$prony" glossary flooor
for width in 40 80; do
    [ "$(COLUMNS=$width "$prony" glossary | LC_ALL=C.UTF-8 grep -cE "^.{$((width + 1)),}\$")" = 0 ]
    report terms_fit_$width $?
done
expect describes_it_as_json 0 '"backends":[{"name":"simd"' "$prony" machine --json
exit $status
