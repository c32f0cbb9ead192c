# What the bench says of a GPU: what it is, with which libraries, what it has there, and how it
# compares with the CPU. Skipped where there is none.

suite=gpu_bench
. tests/shell/command.sh
if [ ! -e /dev/nvidiactl ]; then
    echo "skip $suite: there is no GPU"
    exit 0
fi

# matches NAME PATTERN FILE: a line of it does.
matches() {
    grep -q "$2" "$3"
    report "$1" $? "$(cut -c 1-2000 "$3")"
}

"$prony" bench small --unit gpu --seconds 0.2 --out "$folder/small" >/dev/null || exit 2
matches names_what_it_computed_with '"software":"prony [^"]*, driver [0-9.]*, cuda [0-9.]*' "$folder/small"
matches has_the_facts_of_the_gpu '"gpu":{"name":"[^"]*","memory_bytes":[0-9]*,"multiprocessors":[0-9]*,"driver":"' \
    "$folder/small"
matches files_the_ceilings_of_the_run '"kind":"machine".*"ceiling":"fp32","unit_name":' "$folder/small"
# A network of 62 parameters, and what CUDA needs for itself: less than a gigabyte.
matches has_memory_of_its_own '"gpu_memory":\([0-9]\{1,9\}[,}]\|"not available: NVML does not list\)' \
    "$folder/small"

expect compares_low_precision_with_a_cpu 0 'small, training, tf32 on the GPU, fp32 on the CPU' \
    "$prony" bench small --find-crossover --precision tf32 --phase training --batch 1 --seconds 0.05
exit $status
