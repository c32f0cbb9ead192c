# tools/tables on records that are made up: what it says of intervals, and of what was not checked.

suite=tables
. tests/shell/command.sh
if ! command -v python3 >/dev/null; then
    echo "skip $suite: python3 is not installed"
    exit 0
fi

# result FRAMEWORK BACKEND MODEL PHASE BATCH PRECISION LOW MEDIAN HIGH VERDICT [OPTIMISER]: a line of them, in µs.
result() {
    printf '{"kind":"result","status":"ok","point":{"framework":"%s","backend":"%s","model":"%s","phase":"%s",' \
        "$1" "$2" "$3" "$4"
    printf '"batch":%s,"precision":"%s","scenario":"iterate","unit":"gpu","data":"synthetic","optimiser":"%s"},' \
        "$5" "$6" "${11:-sgd}"
    printf '"result":{"time_ns":{"ci_low":%s,"median":%s000,"ci_high":%s},"flop":1,"bytes":1,' "$7" "$8" "$9"
    printf '"check":{"verdict":"%s"}},"samples_ns":[%s000]}\n' "${10}" "$8"
}
# wrong FRAMEWORK BACKEND MODEL BATCH: training by one that was found wrong, as the bench writes it.
wrong() {
    printf '{"kind":"result","status":"failed","point":{"framework":"%s","backend":"%s","model":"%s",' "$1" "$2" "$3"
    printf '"phase":"training","batch":%s,"precision":"fp32","scenario":"iterate","unit":"gpu",' "$4"
    printf '"data":"synthetic","optimiser":"sgd"},"result":{"time_ns":null,"flop":null,"bytes":null,'
    printf '"check":{"verdict":"wrong"}},"samples_ns":[]}\n'
}
{
    result prony cuda lenet training 64 fp32 99000 100 101000 right
    result pytorch graph lenet training 64 fp32 148000 150 160000 right
    result jax default lenet training 64 fp32 97000 99 100000 right
    result prony cuda vgg16 training 64 tf32 null 50000 null right
    result prony cudnn vgg16 training 64 tf32 39000000 40000 41000000 right
    result pytorch graph vgg16 training 64 tf32 null 30000 null none
} >"$folder/records.jsonl"
table=$(tools/tables gpu "$folder/records.jsonl")
holds a_ratio_has_its_interval "$table" '| 150 | 1.50 ± 5.0 % |'
holds who_is_faster_may_not_be_known "$table" 'hold both: lenet, train 64 (jax 1.01 ×)'
holds who_may_be_faster_is_not_in_bold "$table" '| jax 99.0 |'
holds who_is_faster_is "$table" '| **prony cudnn 40,000** |'
holds peers_are_unchecked_too "$table" '| 30,000, unchecked | 0.60 ± ? |'
holds few_samples_tell_large_differences "$table" 'Another is faster: vgg16, train 64, tf32 (pytorch graph 1.67 ×, prony cudnn 1.25 ×)'
holds the_zoo_has_its_own "$(tools/tables zoo "$folder/records.jsonl")" \
    '| vgg16, training | 50.0 | 40.0 | 30.0, unchecked | 0.60 ± ? | 0.75 ± ? |'

# Who is not steady is fastest only if its whole interval is, and
# everybody is told.
{
    result prony cuda large training 3 fp32 29000 30 31000 right
    result pytorch graph large training 3 fp32 299000 300 301000 right
    result pytorch compile large training 3 fp32 150000 190 290000 right
    result jax default large training 3 fp32 199000 200 201000 right
    result prony cuda large training 10 fp32 49000 50 51000 right
    result jax default large training 10 fp32 150000 190 290000 right
    result pytorch graph large training 10 fp32 299000 300 301000 right
} >"$folder/steady.jsonl"
table=$(tools/tables gpu "$folder/steady.jsonl")
holds who_is_not_steady_does_not_decide "$table" '% | jax 200 |'
holds a_wide_interval_is_shown "$table" '% | jax 190 ± 37 % |'
holds what_has_no_record_is_said "$table" 'Not measured: small, train 1;'
holds who_is_not_steady_is_named "$table" \
    'in µs: large, train 3 (pytorch compile 190 ± 37 %); large, train 10 (jax 190 ± 37 %).'

# What is wrong is neither unchecked nor quick, and what another optimiser takes is another work.
{
    result prony cuda small training 1 fp32 950 1 1050 right
    result prony cuda small training 1 fp32 9900000 9999 9990000 right adam
    result pytorch graph small training 1 fp32 60000 61 62000 right
    wrong jax default small 1
    result pytorch graph small training 10 fp32 60000 61 62000 right
    result prony cuda small training 10 fp32 950 1 1050 right
    wrong prony cuda small 10
    result prony cuda large training 3 fp32 950 1 1050 right
    result pytorch graph large training 3 fp32 950 1 1050 wrong
    echo '{"kind":"result","status":"skipped","point":{"unit":"gpu"}}'
} >"$folder/wrong.jsonl"
table=$(tools/tables gpu "$folder/wrong.jsonl")
holds an_optimiser_is_another_work "$table" '| small, train 1 | 1.00 | 61.0 | 61 ± '
holds nobody_wrong_is_the_fastest "$table" '% | – |'
holds what_is_wrong_has_no_time "$table" '| small, train 10 | wrong | 61.0 | – | – | – | – | – | – |'
holds what_is_wrong_is_missed "$table" 'small, train 10 (wrong)'
holds who_is_wrong_is_not_compared_with "$table" '| large, train 3 | 1.00 | wrong | – | – |'

# On the CPU: medians, floors, threads apart; who does not ship is counted.
timed() { # THREADS FRAMEWORK BACKEND MEDIAN FLOOR
    printf '{"kind":"result","status":"ok","point":{"framework":"%s","backend":"%s","model":"large","phase":"training",' "$2" "$3"
    printf '"batch":3,"precision":"fp32","scenario":"iterate","unit":"cpu","data":"synthetic","optimiser":"sgd","threads":%s},' "$1"
    printf '"result":{"time_ns":{"ci_low":%s,"median":%s,"ci_high":%s},"flop":1,"bytes":1,"floor_ns":%s,"bound":"bytes",' \
        "$4" "$4" "$4" "$5"
    printf '"times_floor":%s,"check":{"verdict":"right"}},"samples_ns":[%s]}\n' "$(($4 / $5))" "$4"
}
{
    timed 1 prony simd 6000000 2000000
    timed 1 pytorch default 12000000 2000000
    timed 1 numpy default 9000000 2000000
    timed 2 prony simd 4000000 1000000
    echo '{"kind":"result","status":"skipped","reason":"not shipped: disturbed: known to ± 8 %","point":{"unit":"cpu","framework":"blas"}}'
} >"$folder/cpu.jsonl"
table=$(tools/tables cpu "$folder/cpu.jsonl")
holds a_cpus_work "$table" '| large, train 3 | 1 | 6,000 | 0.0 % | 2,000, bytes | 3.00 | 2.00 ± 0.0 % | numpy 1.50 ± 0.0 % |'
holds threads_are_apart "$table" '| large, train 3 | 2 | 4,000 |'
holds who_does_not_ship_is_counted "$table" 'Of others, 1 results'
holds floors_are_of_medians "$(tools/tables floors "$folder/cpu.jsonl" "$folder/records.jsonl")" 'half of 1 networks and batches take at most 3 × their floor'

# By width: the better number of threads, and from where on the GPU is always faster.
for row in '4 cpu 1 3000' '4 cpu 2 2000' '4 gpu 0 9000' '8 cpu 1 9000' '8 gpu 0 8000' '16 gpu 0 8000'; do
    set -- $row
    backend=$([ "$2" = gpu ] && echo cuda || echo simd)
    timed "$3" prony "$backend" "$4" 1 |
        sed "s/large/mlp:4-$1-$1-$1-1:sigmoid/; s/\"batch\":3/\"batch\":10/; s/\"unit\":\"cpu\"/\"unit\":\"$2\"/"
done >"$folder/widths.jsonl"
table=$(tools/tables crossover "$folder/widths.jsonl")
holds the_better_threads_count "$table" '| CPU | 2.00 | 9.00 | – |'
holds where_the_gpu_wins "$table" 'In training the GPU is faster from width 8 on.'

# How samples came; and sentences as long as the lines of the docs, numbers beside their units.
timed 0 prony cuda 748000 1 | sed 's|"synthetic"|"real/dram","ingestion":"overlapped"|; s|"unit":"cpu"|"unit":"gpu"|
    s|"check"|"meters":{"gather":0,"copy":632000,"copy_overlap":80.7,"compute":580000,"copy_bytes":33554560},"check"|' \
    >"$folder/ingestion.jsonl"
holds how_samples_came "$(tools/tables ingestion "$folder/ingestion.jsonl")" \
    '| large, training, 3 | gpu | real/dram | overlapped | 0.748 | – | – | 0.632 | 81 % | 0.58 | 53.1 |'
holds sentences_are_wrapped "$(tools/tables --wrap gpu "$folder/steady.jsonl")" 'in µs: large, train 3 (pytorch compile 190 ± 37 %); large, train 10
(jax'
exit $status
