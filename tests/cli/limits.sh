# What the system gives a process is told and kept to: the memory of its control group and of
# ulimit -v, its standard files, its home.

suite=limits
. tests/shell/command.sh

# A control group of our own, where root may make one; the version says what its limit is called.
mebibyte=1048576
group= mounted=
clean() {
    [ -z "$group" ] || rmdir "$group"
    [ -z "$mounted" ] || umount "$folder/fixed"
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
    # Another program there holds 150 of the 210 MB, a line without an end: 90 MB would fit without it,
    # 300 MB never.
    mkfifo "$folder/line"
    confined tail -n 1 <"$folder/line" >"$folder/said" &
    exec 9>"$folder/line"
    head -c 150000000 /dev/zero >&9
    expect tells_what_others_hold 1 'this machine allows 209.7 MB, of which other programs hold 1' \
        confined "$prony" train mlp:4-3300-3300-3 iris --epochs 1 --batch 10
    expect and_what_never_fits 1 'this machine allows 209.7 MB' \
        confined "$prony" train mlp:4-6000-6000-3 iris --epochs 1 --batch 10
    exec 9>&-
    wait
else
    echo "skip limits.group: a control group with a limit on memory cannot be made here"
fi
# A network whose parameters take a fifth of the memory, and with Adam's two numbers for each three
# fifths: on the host and where they are used it is more than there is. It is refused before anything
# is made: of 20 GB that would take half a minute.
kilobytes=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)
width=$(awk "BEGIN { print int(sqrt(0.2 * $kilobytes * 1024 / 4)) }")
for command in 'train mlp:4-W-W-3 iris --optimiser adam' 'bench mlp:4-W-W-3 --optimiser adam --backend simd' \
    'train mlp:4-W-W-3 iris --optimiser adam --workers 2 --parallelism pipeline'; do
    # shellcheck disable=SC2046,SC2116
    says "refuses_at_once_${command%% *}_${command##* }" 'out of memory: mlp:4-' \
        timeout -s KILL 5 "$prony" $(echo "$command" | sed "s/W/$width/g")
done

# Data that does not fit is refused before it is made or unpacked.
expect bounds_synthetic_classes 2 'found 999999999 classes, expected at most 65536' \
    timeout -s KILL 5 "$prony" train mlp:4-4-3 synthetic:4x4:999999999
for data in synthetic:99999999x1000 synthetic:99999999x1000:3 ring:999999999 adding:99999999x999; do
    expect "bounds_$data" 2 "$data: found " timeout -s KILL 5 "$prony" train mlp:4-4-3 "$data" --memory 100
done
{ echo 1,2 && head -c 300000000 /dev/zero; } | gzip -1 >"$folder/zeros.csv.gz"
expect unpacks_no_bomb_of_zeros 2 'found bytes that are no text when unpacked' \
    timeout -s KILL 5 "$prony" train mlp:4-4-3 "$folder/zeros.csv.gz"
printf '\000\000\010\002\177\377\377\377\000\000\003\350' >"$folder/huge.idx"
head -c 200000 /dev/zero | cat "$folder/huge.idx" - | gzip >"$folder/huge.idx.gz"
expect believes_no_huge_header 2 'found 2147483647012 bytes when unpacked, by its header' \
    timeout -s KILL 5 "$prony" train mlp:4-4-3 "$folder/huge.idx.gz"
yes 0,0 | head -c 100000000 | gzip -1 >"$folder/text.csv.gz"
bounded() { # it may take 30 MB: text and numbers, not what it would unpack into
    (ulimit -v 200000 && exec timeout -s KILL 10 "$prony" "$@" --memory 20)
}
expect bounds_packed_text 2 'found more than 10000000 bytes when unpacked' \
    bounded train mlp:1-4-1 "$folder/text.csv.gz"
yes 0,0 | head -c 9000000 >"$folder/rows.csv"
expect bounds_the_numbers_of_text 2 'rows that take more than the 20000000 bytes that data may take' \
    bounded train mlp:1-4-1 "$folder/rows.csv"
yes 0,0,0,0,0,0,0,0 | head -n 1000000 | gzip -1 >"$folder/wide.csv.gz" # 16 MB; its rows take 40, its numbers 28
expect adds_up_text_rows_and_numbers 2 'features, which take more than the 80000000 bytes' \
    timeout -s KILL 10 "$prony" train mlp:7-2-1 "$folder/wide.csv.gz" --memory 80 --epochs 1 --batch 100000

# OpenBLAS asks for its buffers until it gets them.
(ulimit -v 100000 && PRONY_BLAS=openblas exec timeout -s KILL 20 "$prony" machine) >"$folder/said" 2>&1
expect tells_the_memory_of_ulimit 0 '102 MB (the limit of its control group or ulimit -v' cat "$folder/said"
expect leaves_out_openblas_where_it_would_never_end 0 'ulimit -v leaves too few addresses for OpenBLAS' \
    cat "$folder/said"

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
expect finds_nothing_without_a_home 2 'which is not there; set it or XDG_DATA_HOME' \
    homeless "$prony" train lenet mnist
homeless "$prony" machine >"$folder/said" 2>&1
test ! -e "$folder/home"
report makes_no_home $? "$(find "$folder/home" 2>&1 | head -5)"

# What a terminal would obey is not printed: in messages, and in tables of names from files.
escape=$(printf '\033')
plain() { # NAME COMMAND…
    name=$1
    shift
    "$@" >"$folder/said" 2>&1
    test -s "$folder/said" && ! grep -q "[$escape$(printf '\007')]" "$folder/said"
    report "$name" $? "$(cat -v "$folder/said")"
}
printf '1,2,3,4,%s[2Jone\n2,3,4,5,two\n' "$escape" >"$folder/class.csv"
printf 'input 4\ndense %s[2J\007\n' "$escape" >"$folder/layer.net"
printf '1,%s[2J,3,4,a\n' "$escape" >"$folder/field.csv"
"$prony" train mlp:4-3-2 "$folder/class.csv" --epochs 1 --test 0 --out "$folder/model" >"$folder/said" 2>&1
plain shows_no_commands_in_a_networks_name "$prony" train "$escape[2J" iris
plain shows_none_in_a_commands_name "$prony" "$escape[2J"
plain shows_none_of_a_network "$prony" explain "$folder/layer.net"
plain shows_none_of_a_field "$prony" train small "$folder/field.csv"
plain shows_none_of_a_class "$prony" predict mlp:4-3-2 "$folder/model" "$folder/class.csv"

# The system's reason is told.
mkdir "$folder/fixed"
if mount -t tmpfs -o ro,size=64k tmpfs "$folder/fixed" 2>/dev/null; then
    mounted=1
    for command in 'bench small --seconds 0.01 --store FILE' 'bench small --seconds 0.01 --out FILE' \
        'train small iris --epochs 1 --out FILE' 'export small --out FILE.onnx'; do
        # shellcheck disable=SC2046,SC2116
        says "tells_that_it_is_read_only_${command%% *}_${command##* }" 'Read-only file system' \
            "$prony" $(echo "$command" | sed "s|FILE|$folder/fixed/new|")
    done
else
    echo "skip limits.read_only: no file system can be mounted here"
fi
ln -s loop "$folder/loop"
expect tells_that_links_go_in_circles 1 'loop: cannot open: Too many levels of symbolic links' \
    "$prony" train small "$folder/loop"
exit $status
