# The measuring program builds and runs with nothing but libc: no guide, no plugin. It is
# built to be debugged, which is quicker and which no other test does.

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! { cmake -S . -B "$folder" -G Ninja -DPRONY_GUIDE=OFF -DPRONY_CUDA=OFF \
    -DPRONY_TESTS=OFF -DCMAKE_BUILD_TYPE=Debug && cmake --build "$folder" -j 2; } >"$folder/log" 2>&1; then
    tail -n 40 "$folder/log"
    echo "FAIL slow_bare.builds"
    exit 1
fi
echo "ok   slow_bare.builds"

status=0
needed=$(readelf -d "$folder/prony" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
others=$(printf '%s\n' "$needed" | grep -vE '^(lib(c|m)|ld-linux.*)\.so')
if [ -n "$needed" ] && [ -z "$others" ]; then
    echo "ok   slow_bare.needs_only_libc"
else
    echo "FAIL slow_bare.needs_only_libc:" $others
    status=1
fi
if "$folder/prony" --version >/dev/null; then
    echo "ok   slow_bare.runs"
else
    echo "FAIL slow_bare.runs"
    status=1
fi

# A CUDA toolkit that is too old is left out, and nothing else with it.
printf '#!/bin/sh\necho "Cuda compilation tools, release 11.8, V11.8.89"\n' >"$folder/nvcc"
chmod +x "$folder/nvcc"
if cmake -S . -B "$folder/old" -G Ninja -DPRONY_GUIDE=OFF -DPRONY_TESTS=OFF \
    -DPRONY_CUDA=ON -DCMAKE_CUDA_COMPILER="$folder/nvcc" >"$folder/log" 2>&1 &&
    grep -q 'CUDA plugin left out: it needs nvcc 13.0 or newer; .*/nvcc is 11.8' "$folder/log"; then
    echo "ok   slow_bare.leaves_an_old_toolkit_out"
else
    tail -n 20 "$folder/log"
    echo "FAIL slow_bare.leaves_an_old_toolkit_out"
    status=1
fi

cmake -S . -B "$folder/auto" -G Ninja -DPRONY_GUIDE=OFF -DPRONY_TESTS=OFF \
    >"$folder/auto-log" 2>&1
# Without a GPU the plugin is built for those who ask, and configuring says how.
if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
    echo "skip slow_bare.says_how_to_ask_for_the_plugin: there is a GPU here"
elif grep -q 'CUDA plugin left out: no NVIDIA GPU here (`make cuda`' "$folder/auto-log"; then
    echo "ok   slow_bare.says_how_to_ask_for_the_plugin"
else
    tail -n 20 "$folder/auto-log"
    echo "FAIL slow_bare.says_how_to_ask_for_the_plugin"
    status=1
fi
exit $status
