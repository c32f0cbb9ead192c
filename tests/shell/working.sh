# For tests of a command in a folder of its own, which is gone afterwards: what it says and leaves there. The
# test names itself in $suite before it reads this file, and ends with $failures.

prony=$PRONY_BUILD/prony
root=$(pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
failures=0

ok() { echo "ok   $suite.$1"; }
fail() {
    echo "$suite.$1: $2"
    echo "FAIL $suite.$1"
    failures=1
}

# expect NAME STATUS TEXT COMMAND…: the command ends with that status and says the text (a basic
# regular expression) on either stream.
expect() {
    name=$1 status=$2 text=$3
    shift 3
    "$@" >output 2>&1 </dev/null
    found=$?
    if [ $found -ne "$status" ]; then
        cat output
        fail "$name" "exit status $found, expected $status: $*"
    elif ! grep -q -- "$text" output; then
        cat output
        fail "$name" "did not say \"$text\": $*"
    else
        ok "$name"
    fi
}

# says NAME TEXT: so did the command that was run last.
says() {
    if grep -q -- "$2" output; then ok "$1"; else cat output && fail "$1" "did not say \"$2\""; fi
}
