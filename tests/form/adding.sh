# docs/adding-*.md, carried out: the blocks of the six documents are applied to a copy of the tree,
# which then has another op, its kernels, another layer, axis, training setting and backend. Shows that
# each touches only the places that the table of docs/architecture.md names, and that every source that
# was added or changed compiles: CUDA where nvcc is. With ADDING=run (`make slow TESTS=adding`) all of it is built, and shows what one gets for it.
#
# A block's first line says what happens to which file: ```c FILE new, ```c FILE append, or
# ```c FILE before: TEXT and after: TEXT, where one line of the file begins with TEXT.

suite=adding
. tests/shell/command.sh

root=$(pwd)
tree=$folder/tree

if ! git ls-files -co --exclude-standard >"$folder/files" 2>/dev/null; then
    echo "skip adding: not a git checkout, so what belongs to the tree is not known"
    exit 0
fi
mkdir "$tree"
while read -r file; do
    [ -f "$file" ] && echo "$file"
done <"$folder/files" | tar -cf - -T - | tar -xf - -C "$tree"

# Writes each block of DOCUMENT to FOLDER/1, 2 … and prints "NUMBER FILE ACTION TEXT" for it.
blocks_of() { # DOCUMENT FOLDER
    awk -v folder="$2" '
        /^```/ && inside { inside = 0; close(file); next }
        inside { print > file; next }
        /^```[a-z]+ [^ ]+ (new|append|before:|after:)/ {
            inside = 1
            file = folder "/" ++count
            sub(/^```[a-z]+ /, "")
            print count, $0
        }' "$1"
}

# insert FILE BLOCK before:|after: TEXT: at the one line that begins with TEXT, blanks aside.
insert() {
    awk -v block="$2" -v where="$3" -v text="$4" '
        function add(line) { while ((getline line < block) > 0) print line; close(block) }
        {
            line = $0
            sub(/^[ \t]+/, "", line)
            here = index(line, text) == 1
            found += here
            if (here && where == "before:") add()
            print
            if (here && where == "after:") add()
        }
        END { exit found == 1 ? 0 : 1 }' "$1" >"$folder/inserted" && cp "$folder/inserted" "$1"
}

apply() { # DOCUMENT: in the tree; false when a block does not fit
    mkdir -p "$folder/blocks"
    blocks_of "$1" "$folder/blocks" >"$folder/list"
    [ -s "$folder/list" ] || return 1
    while read -r number file action text; do
        block=$folder/blocks/$number
        case $action in
        new)
            [ ! -e "$file" ] && mkdir -p "$(dirname "$file")" && cp "$block" "$file" || return 1
            ;;
        append) [ -f "$file" ] && cat "$block" >>"$file" || return 1 ;;
        *) insert "$file" "$block" "$action" "$text" || return 1 ;;
        esac
    done <"$folder/list"
}

# What in the tree differs from the project, one line, sorted.
changed() {
    (cd "$tree" && find . -type f | sed 's|^\./||' | sort) | while read -r file; do
        cmp -s "$root/$file" "$tree/$file" || echo "$file"
    done | tr '\n' ' '
}

# adds WHAT DOCUMENT FILES: applying the document to what is there changes these files and no other.
adds() {
    before=$(changed)
    if ! (cd "$tree" && apply "$root/docs/$2"); then
        report "$1_applies" 1 "a block of docs/$2 does not fit the tree"
        return
    fi
    found=$(changed)
    expected=$(printf '%s\n' $before $3 | sort -u | tr '\n' ' ')
    [ "$found" = "$expected" ]
    report "$1_touches_only_its_places" $? "changed: $found, expected: $expected"
}
adds op adding-an-op.md "src/core/ops.def src/backend/cpu/ref/ref_square.c src/nn/grads.def src/nn/grads/grad_square.c"
adds kernels adding-a-kernel.md "src/backend/cpu/simd/elementwise/square_isa.c src/backend/cpu/simd/lists.def \
    src/backend/cuda/ops/square.cu src/backend/cuda/plan/kernel_list.def"
edited=$(for file in $(changed); do [ ! -f "$root/$file" ] || echo "$file"; done)
[ "$(echo "$edited" | wc -l)" -le 4 ]
report an_op_on_all_backends_edits_four_files $? "edited: $edited"
adds layer adding-a-layer.md "src/nn/layers.def src/nn/layers/layer_square.c"
adds axis adding-an-axis.md src/record/axes.def
adds setting adding-a-setting.md "include/prony_settings.def src/train/train.c"
adds backend adding-a-backend.md "CMakeLists.txt src/backend/tiny/backend_tiny.c"

(cd "$tree" && sh tools/docs docs/layers.md >"$folder/layers.md")
says the_layer_is_in_the_docs '| `square` |' cat "$folder/layers.md"
says the_include_rules_hold 'ok   check_includes' sh -c "cd '$tree' && sh tests/form/check_includes.sh"

# The new code is built as the rest is: warnings are errors. With little optimisation: that
# is quicker than what it saves in the little that runs.
build=$folder/build
cmake -S "$tree" -B "$build" -G Ninja -DPRONY_GUIDE=OFF -DPRONY_CUDA=ON -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_CUDA_FLAGS=-Ofc=max -DCMAKE_CUDA_ARCHITECTURES=90a-real >"$folder/log" 2>&1
report configures $? "$(tail -n 40 "$folder/log")"
if [ "$ADDING" != run ]; then
    # A source has an object for each library that it is part of, and one for each ISA.
    plugin=src/backend/cuda/ops/square.cu\ src/backend/cuda/plan/kernel_list.cu
    grep -q prony_cuda.so "$build/build.ninja" || plugin=
    [ -n "$plugin" ] || echo "skip adding.square_compiles: the CUDA plugin is not built here: $(grep 'CUDA plugin' "$folder/log")"
    for source in $(changed | tr ' ' '\n' | grep '\.c$') $plugin; do
        objects=$(ninja -C "$build" -t targets all | sed -n "s|^\([^:]*/$source\.o\):.*|\1|p")
        # shellcheck disable=SC2086 # a list of objects
        [ -n "$objects" ] && ninja -C "$build" $objects >"$folder/log" 2>&1
        report "$(basename "${source%.*}")_compiles" $? "$(tail -n 40 "$folder/log")"
    done
    exit $status
fi
targets="prony prony_tiny test_conformance test_grad test_awkward test_record"
grep -q prony_cuda.so "$build/build.ninja" && targets="$targets prony_cuda"
[ -f "$PRONY_BUILD/tests/test_store" ] && targets="$targets test_store"
# shellcheck disable=SC2086 # a list of targets
cmake --build "$build" -j 2 --target $targets >"$folder/log" 2>&1
report builds $? "$(tail -n 40 "$folder/log")"
[ $status -eq 0 ] || exit $status
cd "$tree" || exit 2
prony=$build/prony

# The op and the layer.
printf 'input 4\ndense 8\nsquare\ndense 3\n' >squares.net
says the_op_has_a_case ok "$build/tests/test_conformance" every_case_agrees_with_f64_ref
says gradients_agree '2 passed, 0 failed' "$build/tests/test_grad"
says explain_shows_the_op 'square1 = square(dense1)' "$prony" explain squares.net
says explain_shows_its_gradient 'd(dense1) = square_grad(dense1, d(square1))' \
    "$prony" explain squares.net --phase training
if "$prony" explain small --backend simd >/dev/null 2>&1; then
    says explain_names_the_fast_kernel '"kernel":"square_f32_' "$prony" explain squares.net --backend simd --json
    says the_fast_kernel_agrees ok "$build/tests/test_conformance" every_case_agrees_with_f64_simd
else
    echo "skip adding.explain_names_the_fast_kernel: this CPU has no simd backend"
fi
if [ -f "$build/prony_cuda.so" ]; then
    says explain_on_paper_names_its_kernel 'square_f32_cuda' "$prony" explain squares.net --backend cuda
    says and_that_of_its_gradient 'square_grad_f32_cuda' "$prony" explain squares.net --backend cuda --phase training
else
    echo "skip adding.explain_on_paper_names_its_kernel: the CUDA plugin is not built here"
fi
says explain_counts_its_flop '"op":"square","part":"forward","layer":"square1","inputs":[4],"outputs":[5],"flop":16' \
    "$prony" explain squares.net --batch 2 --json
says it_learns 'test accuracy 9' "$prony" train squares.net iris --rate 0.05
says its_arguments_are_checked "found '2', but square takes 0 arguments" \
    sh -c "printf 'input 4\nsquare 2\n' >bad.net; '$prony' explain bad.net"

# The axis.
bench="$prony bench small --backend ref --seconds 0.2"
says the_axis_is_a_flag 'the colour of the machine' "$prony" bench --help all
says the_axis_is_a_json_key '"colour":"red"' $bench --colour red --format json
says the_axis_has_a_default '"colour":"green"' $bench --format json
says the_axis_has_choices green $bench --colour blue
if [ -f "$build/tests/test_store" ]; then
    "$PRONY_BUILD/prony" store add tests/golden/record.jsonl --store "$folder/old.db" >/dev/null
    $bench --colour red --store "$folder/old.db" >/dev/null 2>&1
    says the_axis_is_a_column_of_an_old_store 'red' \
        "$prony" store export --format csv --where colour=red --store "$folder/old.db"
    says the_store_still_works ' 0 failed' "$build/tests/test_store"
else
    echo "skip adding.the_axis_is_a_column_of_an_old_store: built without store"
fi
says records_still_work ' 0 failed' "$build/tests/test_record"

# The setting.
says the_setting_is_a_flag '--unmixed N ' "$prony" train --help all
says the_setting_has_a_range '--unmixed: found "0", expected' "$prony" train small iris --unmixed 0
says it_is_trained_with 'test accuracy' "$prony" train small iris --epochs 2 --unmixed 2 --out unmixed.st
says it_makes_a_difference differ sh -c \
    "'$prony' train small iris --epochs 2 --out mixed.st >/dev/null; cmp mixed.st unmixed.st 2>&1"

# The backend.
exports=$(nm -D --defined-only "$build/prony_tiny.so" | awk '{ print $NF }')
[ "$exports" = prony_plugin ] || [ "$exports" = "prony_plugin@@PRONY" ]
report the_plugin_exports_one_symbol $? "exported: $exports"
says machine_lists_it 'tiny              available' "$prony" machine
conformance=$("$build/tests/test_conformance" every_case_agrees_with_f64_tiny)
holds its_conformance_tests_run "$conformance" 'ok   test_conformance.every_case_agrees_with_f64_tiny'
holds what_it_refuses_is_counted "$conformance" "'tiny' ran 8 cases and passed over"
awkward=$("$build/tests/test_awkward")
holds tests_it_cannot_run_are_skipped "$awkward" ' 0 failed'
holds tests_say_why "$awkward" \
    "skip test_awkward.batch_norm_keeps_statistics_tiny: the backend 'tiny' cannot run"
says explain_says_what_it_lacks "the backend 'tiny' cannot run the op rows" \
    "$prony" explain small --backend tiny
says bench_records_why_it_was_skipped '"status":"skipped","reason":"the backend '"'tiny'"' cannot run the op' \
    "$prony" bench small --backend tiny --seconds 0.2 --format json
exit $status
