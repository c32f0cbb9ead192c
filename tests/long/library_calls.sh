# What a call of the library takes beside the bench's own, in turns: 10 % or 60 ns more at most,
# whichever is more. Where others use the machine a call of milliseconds is disturbed more than that:
# what is right once in three tries is right.

suite=library_calls
. tests/shell/command.sh
cores=$(nproc)

# medians NETWORK BATCH SCENARIO THREADS: the medians of the engine's call and of the library's, in ns.
medians() {
    "$prony" bench "$1" --phase inference --batch "$2" --scenario "$3" --threads "$4" --backend simd \
        --through engine,library --seconds 3 --format csv |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
                 { gsub(/"[^"]*"/, "") # a text may have commas
                   ns[NR] = $column["time_median_ns"] }
                 END { print ns[2] + 0, ns[3] + 0 }'
}

for row in "small 1 single-stream" "small 10 multi-stream" "large 1 single-stream" "large 10 multi-stream" \
    "lenet 1 single-stream" "small 1 queued"; do
    set -- $row
    for threads in 1 2; do
        [ "$threads" -le "$cores" ] || continue
        held=1 found=
        for try in 1 2 3; do
            pair=$(medians "$1" "$2" "$3" $threads)
            found="$found $pair ns;"
            echo "$pair" | awk '{ exit !($1 > 0 && ($2 <= 1.1 * $1 || $2 <= $1 + 60)) }' && held=0 && break
        done
        echo "$1 $2 $3, $threads thread(s): engine and library$found"
        report "$1_$2_$3_$threads" $held "found$found expected at most 10 % or 60 ns more"
    done
done
exit $status
