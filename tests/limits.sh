# What the system gives a process is told and kept to: the memory of its control group and of
# ulimit -v, its standard files, its home.

suite=limits
. tests/shell/command.sh

# A control group of our own, where root may make one; the version says what its limit is called.
mebibyte=1048576
group=
clean() {
    [ -z "$group" ] || rmdir "$group"
    rm -rf "$folder"
}
trap clean EXIT
for kind in memory:memory.limit_in_bytes .:memory.max; do
    place=/sys/fs/cgroup/${kind%:*}/prony-test-$$ limit=${kind#*:}
    [ -z "$group" ] && mkdir "$place" 2>/dev/null || continue
    if (echo $((200 * mebibyte)) >"$place/$limit") 2>/dev/null; then group=$place; else rmdir "$place"; fi
done
confined() {
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}

# 120,000 rows of 1,000 bytes: 480 MB as floats; labels of one class.
printf '\000\000\010\002\000\001\324\300\000\000\003\350' >"$folder/x.idx"
printf '\000\000\010\001\000\001\324\300' >"$folder/y.idx"
truncate -s 120000012 "$folder/x.idx"
truncate -s 120008 "$folder/y.idx"
train() {
    "$@" "$prony" train mlp:1000-2-1 "$folder/x.idx" --labels "$folder/y.idx" --epochs 1 --batch 1000
}

if [ "$group" ]; then
    says tells_the_memory_of_its_group '210 MB (the limit of its control group' confined "$prony" machine
    expect streams_what_its_group_cannot_hold 0 'streamed' train confined
else
    echo "skip limits.group: a control group with a limit on memory cannot be made here"
fi
# A network whose parameters take a fifth of the memory, and with Adam's two numbers for each three
# fifths: on the host and where they are used it is more than there is. It is refused before anything
# is made: of 20 GB that would take half a minute.
kilobytes=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)
width=$(awk "BEGIN { print int(sqrt(0.2 * $kilobytes * 1024 / 4)) }")
for command in 'train mlp:4-W-W-3 iris --optimiser adam' 'bench mlp:4-W-W-3 --optimiser adam --backend simd'; do
    # shellcheck disable=SC2046,SC2116
    says "refuses_at_once_${command%% *}" 'out of memory: mlp:4-' \
        timeout -s KILL 5 "$prony" $(echo "$command" | sed "s/W/$width/g")
done
says tells_the_memory_of_ulimit '524 MB (the limit of its control group or ulimit -v' \
    sh -c 'ulimit -v 512000; exec "$0" machine' "$prony"
says leaves_out_openblas_where_it_would_never_end 'ulimit -v leaves too few addresses for OpenBLAS' \
    sh -c 'ulimit -v 100000; PRONY_BLAS=openblas exec timeout -s KILL 20 "$0" machine' "$prony"

# Closed standard files: nothing that is opened takes their place.
small() {
    "$prony" train small iris --epochs 1 --out "$folder/model"
}
small >"$folder/said" 2>&1
cp "$folder/model" "$folder/expected"
for closed in '<&-' '2>&-' '<&- 2>&-'; do
    eval "small $closed" >"$folder/said"
    report "writes_the_same_model_with_$closed" $? 'it ended with an error'
    cmp -s "$folder/model" "$folder/expected"
    report "keeps_messages_out_of_it_with_$closed" $? 'the model holds something else'
done
small >&- 2>"$folder/said"
expect refuses_a_closed_output 0 'prony: cannot write to standard output: Bad file descriptor' cat "$folder/said"
eval small '>&- 2>&-'
report ends_with_an_error_then $(($? != 1)) 'status 0, expected 1'
printf '1,2,3,4,a\n' >"$folder/x.csv"
eval '"$prony" train small - <&-' 2>"$folder/said"
expect refuses_a_closed_input 0 'standard input: cannot read: Bad file descriptor' cat "$folder/said"

# A home that is not there stays so.
homeless() {
    env -u XDG_DATA_HOME -u XDG_CACHE_HOME HOME="$folder/home" "$@"
}
says keeps_nothing_without_a_home 'is not kept: no folder to keep files in: HOME is' \
    homeless "$prony" bench small --seconds 0.01
expect finds_nothing_without_a_home 2 'which is not there; expected a folder that is, or XDG_DATA_HOME' \
    homeless "$prony" train lenet mnist
homeless "$prony" machine >"$folder/said" 2>&1
test ! -e "$folder/home"
report makes_no_home $? "$(find "$folder/home" 2>&1 | head -5)"
exit $status
