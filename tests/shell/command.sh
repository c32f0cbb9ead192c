# For tests of a command: where it is, a folder that is gone afterwards, and what it must say. The test
# names itself in $suite before it reads this file, and ends with $status.

prony=$PRONY_BUILD/prony
export COLUMNS=500 # so that what is looked for stands in one line; tests/cli/golden.sh has 80 and 120
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

report() { # NAME HELD EXPLANATION
    if [ "$2" = 0 ]; then
        echo "ok   $suite.$1"
    else
        printf '%s\nFAIL %s.%s\n' "$3" "$suite" "$1"
        status=1
    fi
}

# holds NAME FOUND PART: the text contains PART.
holds() {
    case $2 in
    *"$3"*) report "$1" 0 ;;
    *) report "$1" 1 "found \"$2\", expected \"…$3…\"" ;;
    esac
}

# says NAME PART COMMAND…: what it says, errors included, contains PART.
says() {
    name=$1 part=$2
    shift 2
    holds "$name" "$("$@" 2>&1)" "$part"
}

# expect NAME STATUS PART COMMAND…: it ends with this status, and what it says contains PART.
expect() {
    name=$1 wanted=$2 part=$3
    shift 3
    output=$("$@" 2>&1)
    found=$?
    held=1
    case $output in *"$part"*) [ $found -eq "$wanted" ] && held=0 ;; esac
    report "$name" $held "status $found, expected $wanted; found \"$output\", expected \"…$part…\""
}

# marked NAME TABLE ROW WHY: the row that begins so has the mark whose legend begins with WHY.
marked() {
    mark=$(echo "$2" | sed -n "s/^\([^ ]*\) $4.*/\1/p" | head -1)
    [ -n "$mark" ] && echo "$2" | grep -i "^$3" | grep -qF "$mark"
    report "$1" $? "$2"
}

# await PART FILE: until the file holds PART, or a minute has passed.
await() {
    tries=0
    until grep -qs -e "$1" "$2" || [ $((tries += 1)) -gt 600 ]; do sleep 0.1; done
}
