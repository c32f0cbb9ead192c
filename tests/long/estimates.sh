# How long suites are said to take, against how long they took: within a factor of 2. It asks for a quiet
# machine: where others keep a core busy at the end, the factor is only printed.

suite=estimates
. tests/shell/command.sh

for name in ${SUITES:-demo threads size kinds}; do
    begun=$(date +%s)
    "$prony" suite "$name" --out "$folder/$name.jsonl" >/dev/null 2>"$folder/$name.said"
    taken=$(($(date +%s) - begun))
    plan=$(sed -n 's/^prony: \([0-9]* configurations\{0,1\}, about .*\)/\1/p' "$folder/$name.said" | head -n 1)
    planned=$(printf '%s\n' "$plan" | awk '{
        sub(/.*about /, "")
        for (i = 1; i < NF; i += 2) s += $i * ($(i + 1) == "h" ? 3600 : $(i + 1) == "min" ? 60 : 1)
        print s + 0 }')
    awk -v name="$name" -v planned="$planned" -v taken="$taken" 'BEGIN {
        factor = planned > taken ? planned / (taken ? taken : 1) : taken / (planned ? planned : 1)
        printf "%-14s planned %4d s, taken %4d s, factor %.2f\n", name, planned, taken, factor }'
    if awk -v cores="$(nproc)" '{ exit !($1 > cores + 0.8) }' /proc/loadavg; then
        echo "skip estimates.${name}_within_2: other programs keep cores busy"
    else
        awk -v planned="$planned" -v taken="$taken" 'BEGIN { exit !(planned <= 2 * taken + 2 && taken <= 2 * planned + 2) }'
        report "${name}_within_2" $? "planned $planned s, taken $taken s"
    fi
    [ -n "$plan" ]
    report "${name}_says_how_long_it_takes" $? "$(head -n 3 "$folder/$name.said")"
done
exit $status
