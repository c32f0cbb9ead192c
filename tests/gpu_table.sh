# tools/gpu-table on records that are made up: what it says of intervals, and of what was not checked.

suite=gpu_table
. tests/shell/command.sh
if ! command -v python3 >/dev/null; then
    echo "skip $suite: python3 is not installed"
    exit 0
fi

# result FRAMEWORK BACKEND MODEL PHASE BATCH PRECISION LOW MEDIAN HIGH VERDICT: a line of them, in µs.
result() {
    printf '{"kind":"result","status":"ok","point":{"framework":"%s","backend":"%s","model":"%s","phase":"%s",' \
        "$1" "$2" "$3" "$4"
    printf '"batch":%s,"precision":"%s","scenario":"iterate","unit":"gpu","data":"synthetic"},' "$5" "$6"
    printf '"result":{"time_ns":{"ci_low":%s,"median":%s000,"ci_high":%s},"flop":1,"bytes":1,' "$7" "$8" "$9"
    printf '"check":{"verdict":"%s"}},"samples_ns":[%s000]}\n' "${10}" "$8"
}
{
    result prony cuda lenet training 64 fp32 99000 100 101000 right
    result pytorch graph lenet training 64 fp32 148000 150 160000 right
    result jax default lenet training 64 fp32 97000 99 100000 right
    result prony cuda vgg16 training 64 tf32 null 50000 null right
    result prony cudnn vgg16 training 64 tf32 39000000 40000 41000000 right
    result pytorch graph vgg16 training 64 tf32 null 30000 null none
} >"$folder/records.jsonl"
table=$(tools/gpu-table "$folder/records.jsonl")
holds a_ratio_has_its_interval "$table" '| 150 | 1.50 ± 5.0 % | 1.5 |'
holds what_was_asked_may_not_be_known "$table" 'hold both: lenet, train 64 (1.500 × of 1.5, jax 1.01 ×)'
holds who_may_be_faster_is_not_in_bold "$table" '| jax 99.0 |'
holds who_is_faster_is "$table" '| **prony cudnn 40,000** |'
holds peers_are_unchecked_too "$table" '| 30,000, unchecked | 0.60 ± ? |'
holds few_samples_tell_large_differences "$table" 'Another is faster: vgg16, train 64, tf32 (pytorch graph 1.67 ×, prony cudnn 1.25 ×)'
holds the_zoo_has_its_own "$(tools/gpu-table --zoo "$folder/records.jsonl")" \
    '| vgg16, training | 50.0 | 40.0 | 30.0, unchecked | 0.60 ± ? | 0.75 ± ? |'
exit $status
