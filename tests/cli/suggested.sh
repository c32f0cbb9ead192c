# Every command that an answer, a record, a page or a message suggests is one that prony takes: it may be
# skipped for want of a GPU, but it is not refused.

suite=suggested
. tests/shell/command.sh

# Flags of each command, from its help.
commands=$("$prony" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
for command in $commands; do
    "$prony" "$command" --help all 2>&1 | grep -oE -- '--[a-z][a-z-]*' | sed "s/^/$command /"
done | sort -u >"$folder/flags"
# The page's colours have such names, too.
find src/guide/ui -name node_modules -prune -o -name '*.css' -exec cat {} + |
    grep -oE -- '--[a-z][a-z-]*' | sort -u >"$folder/colours"

# Texts of the sources, one a line; what the compiler joins is joined.
texts() {
    find "$@" -type f \( -name '*.c' -o -name '*.cu' -o -name '*.def' -o -name '*.ts' \) -exec cat {} + |
        tr '\n' '\001' | sed "s/\"$(printf '\001') *\"//g" | tr '\001' '\n' |
        grep -vE '^ *(//|/?\*)' | grep -oE '"([^"\\]|\\.)*"|`[^`]*`'
}

# unknown: of texts, the commands with a name or a flag that prony does not have, and flags of no command.
unknown() {
    awk -v commands="$(echo $commands)" -v flags="$folder/flags" -v colours="$folder/colours" '
        BEGIN {
            split(commands, names, " ")
            for (i in names) is_command[names[i]] = 1
            while ((getline line < flags) > 0) { has[line] = 1; split(line, words, " "); any[words[2]] = 1 }
            while ((getline line < colours) > 0) any[line] = 1
            any["--version"] = any["--cfg"] = any["--mpi"] = 1 # the last two are SimGrid'"'"'s and srun'"'"'s
        }
        function look(verb, rest,   flag) {
            while (match(rest, /(^|[^-a-z])--[a-z][a-z-]*/)) {
                flag = substr(rest, RSTART, RLENGTH); sub(/^[^-]/, "", flag)
                if (verb != "" ? !((verb " " flag) in has) : !(flag in any)) print "prony " verb " " flag ": " $0
                rest = substr(rest, RSTART + RLENGTH)
            }
        }
        {
            count = split($0, parts, /prony /)
            look("", parts[1])
            for (i = 2; i <= count; i++) {
                verb = match(parts[i], /^[a-z]+/) ? substr(parts[i], 1, RLENGTH) : ""
                rest = parts[i]; sub(/[|;:)].*|\\n.*/, "", rest)
                if (verb in is_command) look(verb, rest)
                else look(verb ~ /^[a-z]/ && rest ~ /^[a-z]+ (-|[a-z]+ -)/ ? verb : "", rest)
            }
        }'
}
found=$(texts src | unknown)
[ "$(wc -l <"$folder/flags")" -ge 100 ] && [ -z "$found" ]
report texts_name_what_there_is $? "found $found"
printf '"%s"\n' 'try prony bench small --average-every 2' 'see prony stroe --repair' 'with --wrokers' >"$folder/planted"
[ "$(unknown <"$folder/planted" | wc -l)" -eq 3 ]
report finds_planted_ones $? "found $(unknown <"$folder/planted")"

# refused FILE: those of its command lines that prony refuses, which takes it no time.
refused() {
    list=$1
    while read -r line; do
        set -f
        eval "set -- $(printf '%s' "$line" | sed 's/ |.*//')"
        set +f
        timeout -k 0.2 0.4 "$prony" "$@" </dev/null >"$list.said" 2>&1
        [ $? -eq 2 ] && echo "prony $line: $(tail -1 "$list.said")"
    done <"$list"
}

# What a message tells somebody to do: the command after "prony", or the flags for the same command.
remedy() { # NAME PATTERN COMMAND…: the message has this, which prony takes in its turn
    name=$1 pattern=$2
    shift 2
    "$prony" "$@" 2>&1 | tr -d '"' | grep -oE "$pattern" | sed 's/^prony //' | tail -1 >"$folder/remedy"
    found=$(refused "$folder/remedy")
    [ -s "$folder/remedy" ] && [ -z "$found" ]
    report "$name" $? "found \"$(cat "$folder/remedy")\": $found, in $("$prony" "$@" 2>&1 | tail -3)"
}
remedy begins 'prony train small iris' help
remedy calibrates 'prony machine --calibrate' machine
remedy calibrates_a_unit 'prony machine --calibrate --unit cpu' machine --unit cpu
remedy trains_until 'prony bench small --until [^ ]* --dataset [a-z]*' bench small --until accuracy=0.95
remedy times_kernels 'prony bench --kernels' bench --kernels nothing

# Every command in a message, a hint or an example of the sources is taken. Files that they name are made
# here; the words of the sentence after a command are cut off.
here=$folder/here
# They keep files in a home of their own: one of them names the machine.
mkdir -p "$here/in" "$here/old/build" "$here/before/build" "$here/data" "$here/cache"
cp tests/trace/recorded/jax_cpu.trace.json.gz "$here/in/trace.json.gz"
cp tests/trace/recorded/copy.pageable.trace.gz "$here/in/run.trace"
make_files() {
    cd "$here/in" || return 1
    ln -s "$prony" ../old/build/prony
    ln -s "$prony" ../before/build/prony
    gzip -dc trace.json.gz >old.json
    cp old.json new.json
    cp run.trace before.trace
    cp run.trace after.trace
    "$prony" train small iris --epochs 1 --out iris.safetensors
    "$prony" train vae digits --epochs 1 --batch 100 --out vae.safetensors
    "$prony" quantise iris.safetensors iris --out iris-int8.safetensors
    "$prony" export small --out model.onnx
    "$prony" bench small --seconds 0.05 --out results.jsonl
    "$prony" store create --empty
    "$prony" store create --store results.db
    cp results.db colleague.db
    cp results.jsonl old.jsonl
    cp results.jsonl new.jsonl
    cp iris.safetensors lenet.safetensors
    cp iris.safetensors house.safetensors
    printf '1,2,3,4\n2,3,4,5\n' >new.csv
    echo 'bench small' >demo.suite
    echo '{"results":[{"command":"true","mean":0.1,"times":[0.1,0.1]}]}' >hyperfine.json
}
(XDG_DATA_HOME=$here/data XDG_CACHE_HOME=$here/cache && export XDG_DATA_HOME XDG_CACHE_HOME && make_files) >"$folder/made" 2>&1
messages() { # FOLDERS: the commands of their texts, one a line
    find "$@" -type f \( -name '*.c' -o -name '*.cu' -o -name '*.def' \) -exec cat {} + |
        tr '\n' '\001' | sed "s/\"$(printf '\001') *\"//g" | tr '\001' '\n' | grep -vE '^ *(//|/?\*)' |
        grep -oE '"([^"\\]|\\.)*"' | sed "s/\\\\\"/'/g" |
        grep -oE "(^|[^a-z/])prony ($(echo $commands | tr ' ' '|')) [^,;()\`\\\\]*" | sed 's/^[^p]*prony //; s/"$//' |
        sed -E "/^[a-z]+ [a-z]+:/d; s/ +(#|\\|).*//; s/  +[a-z].*//
            s/[.:]? (is|as|a|an|the|and|or|lists?|takes?|measures|shows|finds|makes|reads|writes|wrote|saved|looks|has|names|says|times|runs|rebuilds|what|found|expected|printed|said|to|it|in|alone|there|them|text|>)[.:]?( .*|$)//
            s/[.:]$//; s/ '?$//" |
        sed -E "s/--unit %s/--unit cpu/; s/--store %s/--store results.db/; s/--precision %s/--precision fp32/; s/^(bench|profile) %s/\\1 small/; s/%s//g
            s/DATA/iris/; s/0\\.0\\.0\\.0/127.0.0.1/; s/-- COMMAND/-- true/; s/python3 [a-z]+\\.py/true/g; s/suite (FILE|NAME)/suite demo/
            s/--store FILE/--store results.db/; s/--out (FILE|old.jsonl)/--out results.new/; s/(profile) FILE/\\1 run.trace/; s/FILE/iris.safetensors/" |
        awk -v quote="'" 'NF > 1 && gsub(quote, "&") % 2 == 0 && !/^(bench|train|profile) --?[a-z]+$/ &&
            !/^(compare|store (show|remove)) [0-9]/' | sort -u # numbers of records of another store
}
messages src >"$folder/messages"
[ "$(wc -l <"$folder/messages")" -ge 60 ]
report finds_commands_of_messages $? "found $(cat "$folder/messages")"
for part in 0 1 2; do
    awk -v part=$part 'NR % 3 == part' "$folder/messages" >"$folder/messages.$part"
    (cd "$here/in" && export XDG_DATA_HOME="$here/data" XDG_CACHE_HOME="$here/cache" && refused "$folder/messages.$part" >"$folder/messages.$part.refused") &
done
wait
found=$(cat "$folder"/messages.*.refused)
[ -z "$found" ]
report takes_commands_of_messages $? "refused: $found"

if [ ! -f "$PRONY_BUILD/guide/main.js" ] || ! command -v curl >/dev/null; then
    echo "skip $suite: the rest needs the guide and curl"
    exit $status
fi
"$prony" bench small --batch 1,8 --threads 1,2 --seconds 0.05 --store "$folder/store.db" >/dev/null 2>&1
remedy makes_a_store 'prony store create .*' answer small --minutes 0 --store "$folder/no ne.db"
"$prony" store create --empty --store "$folder/empty.db" >/dev/null 2>&1
remedy measures_what_is_not_there 'prony bench .*' answer small --minutes 0 --store "$folder/empty.db"
remedy lists_records 'prony store list.*' store show 99999 --store "$folder/store.db"
printf '[{"model_type":"llama 7B Q4_0","model_filename":"llama.gguf","n_batch":512,"n_threads":4,"n_prompt":512,"n_gen":0,"avg_ns":1000000,"samples_ns":[1000000,1000001]}]\n' >"$folder/llama.json"
"$prony" store add "$folder/llama.json" --store "$folder/store.db" >"$folder/said" 2>&1
report adds_anothers_log $? "$(cat "$folder/said")"
: >"$folder/log"
"$prony" guide --port 0 --store "$folder/store.db" >"$folder/log" 2>&1 &
guide=$!
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    port=$(sed -n 's/.*localhost:\([0-9]*\).*/\1/p' "$folder/log")
    [ -n "$port" ] && break
    sleep 0.5
done
ask() { curl -s "http://localhost:$port/api/$1"; }
models=$(ask 'values?axis=model' | grep -o '"value":"[^"]*"' | sed 's/.*:"//; s/"$//; s/ /%20/g')
{
    for model in $models; do
        for more in '' '&unit=gpu' '&phase=inference'; do ask "answers?model=$model$more"; done
    done
    for server in box vm h200; do ask "overview?server=$server"; done
    ask overview
    for id in $(seq 1 31 600); do ask "record/$id"; done
    ask "$(ask 'records?limit=1&model=llama' | grep -o '"id":[0-9]*' | sed 's/.*:/record\//')"
} | grep -o '"command":"[^"]*"' | sed 's/^"command":"prony //; s/"$//' >"$folder/all"
kill -INT "$guide"
wait "$guide"
for model in small large lenet; do
    COLUMNS=500 "$prony" answer "$model" --minutes 0 --store "$folder/store.db" | sed -n 's/^try  *prony //p'
done >>"$folder/all"
# Of pages the texts, with a store, a network and a file put in.
"$prony" store export --store "$folder/store.db" >"$folder/results.jsonl" 2>/dev/null
cp tests/trace/recorded/jax_cpu.trace.json.gz "$folder/trace.json.gz"
"$prony" train mlp:64-16-10 digits --epochs 1 --out "$folder/digits.safetensors" >/dev/null 2>&1
texts src/guide/ui | grep '^.prony [a-z]* ' | sed 's/^.prony //; s/.$//' >"$folder/pages"
cat $(find src/guide/ui -name '*.ts') | grep -o 'benchLine("[^"]*"' | sed 's/.*("/bench /; s/"$/ --store S/' >>"$folder/pages"
[ "$(wc -l <"$folder/pages")" -ge 8 ]
report finds_commands_of_pages $? "found $(cat "$folder/pages")"
sed "s|\${[^}]*model[^}]*}|small|g; s|\${words}|small|; s|\${to}|--store $folder/store.db|; s|\${pair[^}]*}|results.jsonl|g
    s|\${[^}]*}|S|g; s| S\$| $folder/store.db|; s|results.jsonl|$folder/&|g; s|trace.json.gz|$folder/&|
    s|digits.safetensors|$folder/&|; s|python3 train.py|true|" "$folder/pages" >>"$folder/all"
# One of each kind is run: the same flags, frameworks, backends and scenarios.
awk '{
    key = $1
    for (i = 2; i <= NF; i++)
        if ($i ~ /^--/) key = key " " $i ($i ~ /^--(framework|backend|scenario|precision|unit)$/ ? $(i + 1) : "")
    if (!(key in seen)) print
    seen[key] = 1
}' "$folder/all" >"$folder/kinds"
[ "$(wc -l <"$folder/kinds")" -ge 20 ]
report finds_commands $? "found $(cat "$folder/kinds" "$folder/log")"
for part in 0 1 2 3; do
    awk -v part=$part 'NR % 4 == part' "$folder/kinds" >"$folder/kinds.$part"
    (refused "$folder/kinds.$part" >"$folder/refused.$part") &
done
wait
found=$(cat "$folder/refused."*)
[ -z "$found" ]
report refuses_none $? "refused: $found"
! grep -i llama "$folder/all" >"$folder/said"
report suggests_nothing_of_anothers_model $? "found $(cat "$folder/said")"
exit $status
