# For tests of workers: the processes of a training, and what a signal to one of them comes to.

# workers_of PROCESS: the workers that it has started, in the order of their ranks.
workers_of() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v launcher="$1" '$4 == launcher { print $1 }' | sort -n
}

# await_workers PROCESS COUNT: until there are so many, or ten seconds have passed.
await_workers() {
    tries=0
    until [ "$(workers_of "$1" | wc -l)" -ge "$2" ] || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; done
}

# hit SIGNAL RANK COUNT FILE COMMAND…: starts the command, waits until FILE is there, sends the signal
# to that worker of so many, and waits for the end. Sets $code, $seconds from the signal to the end,
# and $said, what went to the standard error.
hit() {
    signal=$1 rank=$2 count=$3 file=$4
    shift 4
    "$@" >"$folder/hit.out" 2>"$folder/hit.err" </dev/null &
    launcher=$!
    await_workers $launcher "$count"
    tries=0
    until [ -e "$file" ] || [ $((tries += 1)) -gt 300 ]; do sleep 0.1; done
    kill -"$signal" "$(workers_of $launcher | sed -n "$((rank + 1))p")"
    from=$(date +%s)
    wait $launcher
    code=$?
    seconds=$(($(date +%s) - from))
    said=$(cat "$folder/hit.err")
}
