# The program copied alone into a system that has libc and nothing else: it measures there, and the
# parts that need more say which package to install.

suite=bare_root
. tests/shell/command.sh
root=$folder/root
mkdir -p "$root/bin" "$root/proc" "$root/tmp"

needed=$(ldd "$prony" | sed -n 's/^[[:space:]]*\([^ ]*\).*/\1/p' | sed 's|.*/||')
others=$(printf '%s\n' "$needed" | grep -vE '^(linux-vdso|libc|libm|libdl|libpthread|librt|ld-linux.*)\.so')
[ -n "$needed" ] && [ -z "$others" ]
report needs_libc_only $? "found $others, expected libc only"

spaces='--mount --pid --fork'
[ "$(id -u)" -eq 0 ] || spaces="$spaces --map-root-user"
if ! problem=$(unshare $spaces mount -t proc none "$root/proc" 2>&1); then
    echo "skip $suite: a system of its own cannot be made here: $problem"
    exit $status
fi
# add_library NAME: where the loader finds it here, it is there.
add_library() {
    for file in "/lib/$1" /lib/*/"$1" "/lib64/$1"; do
        [ ! -e "$file" ] || cp -L --parents "$file" "$root"
    done
}
for library in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 $(printf '%s\n' "$needed" | grep '^ld-'); do
    add_library "$library"
done
cp "$prony" "$root/bin"

inside() { # ARGUMENTS of prony
    unshare $spaces sh -c 'mount -t proc none "$1/proc" && exec env -i PATH="$PATH" HOME=/tmp chroot "$@"' \
        sh "$root" /bin/prony "$@"
}
expect tells_of_the_machine 0 'CPU' inside machine
expect explains 0 'dense' inside explain small
expect measures 0 'small' inside bench small --seconds 0.05 --out /tmp/records.jsonl
holds keeps_the_records "$(cat "$root/tmp/records.jsonl")" '"status":"ok"'
expect trains 0 'accuracy' inside train small iris --epochs 2
expect trains_with_workers 0 '2 workers' inside train small iris --epochs 2 --workers 2
expect measures_workers 0 'workers 2' inside bench small --workers 2 --seconds 0.05 --out /tmp/workers.jsonl
holds keeps_those_of_workers "$(cat "$root/tmp/workers.jsonl")" '"status":"ok"'
expect sums_between_workers 0 'correct' inside comm --bytes 4k --seconds 0.05
expect advises 0 'small training, batch 64' inside advise small --seconds 0.05
expect names_the_plugin_of_simulate 1 'libsimgrid-dev' inside simulate small --workers 2
expect names_the_agent 1 'libprony_agent.so: found none beside prony' inside profile -- /bin/prony explain small
cp "$PRONY_BUILD"/libprony_agent.so "$root/bin"
expect watches_a_program 0 'unwatched' inside profile -- /bin/prony explain small
rm "$root/bin/libprony_agent.so"
expect has_no_plugin 0 'found no prony_cuda.so in /bin:' inside bench small --backend cuda
if [ -f "$PRONY_BUILD/prony_cuda.so" ]; then
    cp "$PRONY_BUILD/prony_cuda.so" "$root/bin"
    expect the_plugin_asks_for_a_driver 0 'there is no NVIDIA driver' inside bench small --backend cuda
    expect the_plugin_explains_on_paper 0 'stack_four_warps_f32_cuda' \
        inside explain small --backend cuda --phase training --batch 10
    rm "$root/bin/prony_cuda.so"
else
    echo "skip $suite.the_plugin_asks_for_a_driver: built without the CUDA plugin"
fi
for command in 'store list' 'query' 'answer small --minutes 0' 'guide --port 0'; do
    expect "names_the_package_for_${command%% *}" 1 'need SQLite (Debian: apt install libsqlite3-0)' inside $command
done
expect names_the_file_instead 1 '--out FILE.jsonl can' inside bench small --seconds 0.05 --store /tmp/store.db

add_library libsqlite3.so.0
expect opens_a_store 0 'added, 0 there already' inside store add /tmp/records.jsonl --empty --store /tmp/store.db
[ ! -f "$PRONY_BUILD/guide/main.js" ] ||
    expect names_the_package_of_the_guide 1 'needs libmicrohttpd (Debian: apt install libmicrohttpd12)' \
        inside guide --port 0 --store /tmp/store.db
exit $status
