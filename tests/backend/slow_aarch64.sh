# 64-bit Arm, in short: Debian's cross compiler builds the program, the library and some tests without a
# warning, and they run under qemu-user: with every fourth case of the simd kernels (NEON), every eighth of
# the reference. Time means nothing there. tests/long/aarch64.sh builds and runs everything, optimised.

suite=slow_aarch64
. tests/shell/command.sh
if ! command -v aarch64-linux-gnu-gcc >/dev/null; then
    echo "skip slow_aarch64: there is no aarch64-linux-gnu-gcc (tools/setup test)"
    exit 0
fi

build=$folder/build
cmake --preset aarch64 -B "$build" -DPRONY_GUIDE=OFF -DPRONY_ONNX=OFF -DCMAKE_C_FLAGS_RELEASE='-O1 -DNDEBUG' \
    >"$folder/log" 2>&1 &&
    cmake --build "$build" -j 2 --target program test_conformance test_cpu test_json test_pool >>"$folder/log" 2>&1
report builds $? "$(tail -n 40 "$folder/log")"
[ $status -eq 0 ] || exit $status
under=$(sed -n 's/^under //p' "$build/tests.txt")
if [ -z "$under" ]; then
    echo "skip slow_aarch64: there is no qemu-aarch64-static (tools/setup test)"
    exit 0
fi

passes() { # NAME COMMAND…
    name=$1
    shift
    output=$($under "$@" 2>&1)
    report "$name" $? "$output"
}
says knows_its_isa ", neon" $under "$build/prony" machine
says explains_its_kernels "_neon" $under "$build/prony" explain small --phase training --backend simd
says trains "test accuracy 9" $under "$build/prony" train small iris
for test in test_cpu test_json test_pool; do
    passes $test "$build/tests/$test"
done
passes simd_conforms "$build/tests/test_conformance" every_case_agrees_with_f64_simd/1:4
passes ref_conforms "$build/tests/test_conformance" every_case_agrees_with_f64_ref/1:8
exit $status
