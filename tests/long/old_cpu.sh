# x86-64 of 2010, without AVX: all unit tests pass under qemu-user, on the reference kernels.

suite=old_cpu
. tests/shell/command.sh
qemu=$(command -v qemu-x86_64-static || command -v qemu-x86_64) && [ "$(uname -m)" = x86_64 ] || {
    echo "skip old_cpu: there is no qemu-x86_64-static (tools/setup test), or this is no x86-64"
    exit 0
}
cmake --build "$PRONY_BUILD" -j 2 >"$folder/log" 2>&1
report builds $? "$(tail -n 40 "$folder/log")"
tools/run-tests --unit --under "$qemu -cpu Nehalem" "$PRONY_BUILD"
report passes_its_tests $? "see $PRONY_BUILD/test-logs"
exit $status
