# x86-64 of 2010, without AVX: the program runs on it, with the reference kernels, and says so. The emulator
# ends a program at the first instruction that its CPU lacks. tests/long/old_cpu.sh runs all unit tests.

suite=old_cpu
. tests/shell/command.sh
skip() {
    echo "skip old_cpu: $1"
    exit 0
}
[ "$(uname -m)" = x86_64 ] || skip "this build is for $(uname -m)"
qemu=$(command -v qemu-x86_64-static || command -v qemu-x86_64) || skip "there is no qemu-x86_64-static (tools/setup test)"
old="$qemu -cpu Nehalem"

machine=$($old "$prony" machine 2>&1)
holds knows_its_isa "$machine" ", scalar"
holds has_no_simd "$machine" "simd              not available"
holds says_why_it_has_no_simd "$machine" "not available: this CPU has no vectors"
says trains_on_ref "test accuracy 9" $old "$prony" train small iris
expect conforms 0 "ok   test_conformance.every_case_agrees_with_f64_ref" \
    $old "$PRONY_BUILD/tests/test_conformance" every_case_agrees_with_f64_ref/1:8
exit $status
