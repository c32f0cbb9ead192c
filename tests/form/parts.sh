# Parts that need more than libc are left out by configuring, which says why and what to do. That the
# rest builds without them is what the clang build shows (its preset has neither guide nor plugin).

suite=parts
. tests/shell/command.sh

# configure FOLDER OPTION…: its log is in FOLDER.log
configure() {
    build=$folder/$1
    shift
    cmake -S . -B "$build" -G Ninja -DPRONY_GUIDE=OFF -DPRONY_TESTS=OFF "$@" >"$build.log" 2>&1
}

# A CUDA toolkit that is too old is left out, and nothing else with it.
printf '#!/bin/sh\necho "Cuda compilation tools, release 11.8, V11.8.89"\n' >"$folder/nvcc"
chmod +x "$folder/nvcc"
configure old -DPRONY_CUDA=ON -DCMAKE_CUDA_COMPILER="$folder/nvcc" &&
    grep -q 'CUDA plugin left out: it needs nvcc 13.0 or newer; .*/nvcc is 11.8' "$folder/old.log"
report leaves_an_old_toolkit_out $? "$(tail -n 20 "$folder/old.log")"

# Without a GPU the plugin is built for those who ask, and configuring says how.
if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
    echo "skip $suite.says_how_to_ask_for_the_plugin: there is a GPU here"
else
    configure auto && grep -q 'CUDA plugin left out: no NVIDIA GPU here (`make cuda`' "$folder/auto.log"
    report says_how_to_ask_for_the_plugin $? "$(tail -n 20 "$folder/auto.log")"
fi
exit $status
