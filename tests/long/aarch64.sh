# 64-bit Arm: Debian's cross compiler builds everything without a warning, and all unit tests pass under
# qemu-user. With libsqlite3-dev:arm64 and libprotobuf-c-dev:arm64 (dpkg --add-architecture arm64) those of
# the store and of ONNX are among them. About 25 minutes on two cores.

suite=aarch64
. tests/shell/command.sh
if ! command -v aarch64-linux-gnu-gcc >/dev/null; then
    echo "skip aarch64: there is no aarch64-linux-gnu-gcc (tools/setup test)"
    exit 0
fi
{ cmake --preset aarch64 && cmake --build build-aarch64 -j 2; } >"$folder/log" 2>&1
report builds $? "$(tail -n 40 "$folder/log")"
[ $status -eq 0 ] || exit $status
grep 'left out' "$folder/log"
tools/run-tests --unit build-aarch64
report passes_its_tests $? "see build-aarch64/test-logs"
exit $status
