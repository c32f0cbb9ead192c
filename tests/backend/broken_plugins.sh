# Plugins that are broken, each in its way: one line that says what is wrong and what to do, and the
# other backends go on. Beside a prony of its own, so that nobody else sees them.

suite=broken_plugins
. tests/shell/command.sh
if ! command -v cc >/dev/null; then
    echo "skip broken_plugins: no C compiler to make a plugin with"
    exit 0
fi
cp "$prony" "$folder/prony" || exit 2
mine=$folder/prony

echo 'int nothing_of_the_kind;' >"$folder/stranger.c"
cat >"$folder/older.c" <<'C'
struct backend { int abi; const char *name, *unit; } backend = {1, "older", "gpu"};
struct { int abi; const void *backend; void (*share)(void *); } prony_plugin = {1, &backend, 0};
C
for plugin in stranger older; do
    cc -shared -fPIC -o "$folder/prony_$plugin.so" "$folder/$plugin.c" || exit 2
done
echo 'no machine code' >"$folder/prony_junk.so"
for bytes in 40 300 9000; do # of its header, of its segments' table, of a segment
    head -c $bytes "$folder/prony_stranger.so" >"$folder/prony_cut$bytes.so"
done

"$mine" machine >"$folder/machine" 2>&1
expect says_that_it_is_older 0 'is of another version (1, expected' cat "$folder/machine"
expect says_what_to_do 0 'build both together' cat "$folder/machine"
expect says_that_it_is_none 0 'is not a plugin of prony: build or copy it again' cat "$folder/machine"
expect says_that_it_cannot_be_loaded 0 "cannot be loaded: $folder/prony_junk.so: " cat "$folder/machine"
expect says_what_to_do_then 0 'file too short: build or copy it again' cat "$folder/machine"
expect says_that_it_is_cut_short 0 'prony_cut9000.so is cut short: build or copy it again' cat "$folder/machine"
expect says_that_its_table_is_cut_short 0 'prony_cut300.so is cut short' cat "$folder/machine"
expect says_that_its_header_is_cut_short 0 'prony_cut40.so: ' cat "$folder/machine"
expect refuses_it_by_name 1 "the backend 'older': $folder/prony_older.so is of another version" "$mine" train small iris --backend older
expect skips_it_in_a_bench 0 "skipped: the backend 'older': " \
    "$mine" bench small --backend older --seconds 0.05
rm "$folder"/prony_*.so
expect says_that_it_is_not_beside_it 1 "no backend computes on gpu here: cuda: found no prony_cuda.so in $folder: copy it there" \
    "$mine" train small iris --unit gpu
head -c 9000 "$PRONY_BUILD/prony" >"$folder/prony_cuda.so"
expect a_unit_says_it_too 1 "no backend computes on gpu here: cuda: $folder/prony_cuda.so is cut short: build or copy it again" \
    "$mine" train small iris --unit gpu
expect goes_on_with_the_others 0 'correct' "$mine" bench small --backend ref --seconds 0.05
exit $status
