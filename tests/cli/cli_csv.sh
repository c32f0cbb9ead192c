#!/bin/sh
# CSV as people have it, from the file to a model and back, as a user runs it: prices with texts and
# gaps, a list of passengers, commas as decimals, dates; predictions by the saved file alone.
suite=cli_csv
. tests/shell/working.sh

# House prices: an id, a city, a garden, gaps; the price is a sum with some noise. One file as
# Americans have it, one as Germans have it.
awk 'function random() { seed = (seed * 25173 + 13849) % 65536; return seed / 65536 }
    BEGIN {
        split("Bari Lyon Rome", cities); split("0 40000 60000", worth); split("poor good", states)
        print "id,area,city,garden,built,state,price" >"house.csv"
        print "Fläche;Stadt;Preis in Tsd.\r" >"haus.csv"
        for (i = 1; i <= 300; i++) {
            area = 40 + int(160 * random()); city = 1 + int(3 * random()); built = 1920 + int(100 * random())
            garden = random() < 0.5; good = random() < 0.5
            price = 2000 * area + worth[city] + 15000 * garden + 30000 * good + 300 * (built - 1920) + 20000 * random()
            printf "%d,%d,%s,%s,%s,%s,%d\n", i, area, cities[city], garden ? "yes" : "no", i % 20 ? built : "",
                i % 50 ? states[1 + good] : "NA", price >"house.csv"
            printf "%d,%d;\"%s; %s\";%d,%02d\r\n", area, i % 10, cities[city], "IT", price / 1000, i % 100 >"haus.csv"
        }
    }'

expect gaps_are_refused 2 "house.csv:21:.*found a missing value in column built.*--fill median" \
    "$prony" train mlp:auto house.csv
expect prices_are_learnt 0 '^test R² 0\.9' "$prony" train mlp:auto house.csv --drop id --fill median --out house.model
says says_what_it_is '^mlp:auto is mlp:9-16-1, mean squared error, adam'
says says_what_was_filled '  built: 15 missing of 300, filled with the median of the training rows'
says says_how_texts_are_read '  city: 3 texts, a column each: Bari, Lyon, Rome'
says gives_prices_back '^RMSE  *[0-9.]*  *[0-9.]*$'
expect rows_are_left_out 0 '  18 rows with missing values left out' "$prony" train mlp:auto house.csv --drop id --drop-rows --epochs 3
expect numbers_stay_numbers 0 '^test R² ' "$prony" train mlp:10-4-1 house.csv --fill mean --target price --epochs 3
expect codes_can_be_asked_for 0 '  city: 3 texts, numbered in sorted order' "$prony" train mlp:auto house.csv \
    --drop id,state --encode city=code --fill 1970 --epochs 3

# Predictions by the file alone: columns in another order, others beside them, no price.
printf 'agent,city,state,built,garden,area\nX,Rome,good,,yes,100\n"Y, Z",Oslo,poor,1950,no,60\n' >new.csv
expect file_alone_predicts 0 "1 row has a text that was not learnt, as 'Oslo' in line 3" \
    "$prony" predict house.model new.csv --out prices.csv
if [ "$(head -n 1 prices.csv)" = price ] &&
    awk 'NR == 2 { a = $1 } NR == 3 { b = $1 } END { exit !(a > 250000 && a < 350000 && b > 90000 && b < 220000) }' prices.csv; then
    ok prices_have_their_name_and_unit
else
    cat prices.csv
    fail prices_have_their_name_and_unit "expected about 295000 and 150000"
fi
expect score_of_the_same_file 0 '^R² 0\.9' "$prony" predict house.model house.csv
# What always saying the mean would reach is by the rows that were learnt from, not by those predicted.
awk 'BEGIN { print "x,y"; for (i = 0; i < 40; i++) printf "%d,%d\n", i, 10 * i }' >line.csv
"$prony" train mlp:1-4-1 line.csv --epochs 3 --test 0 --out line.model >/dev/null
printf 'x,y\n5,400\n' >one.csv
expect one_row_has_no_differences 0 '^R² –: there is one row only$' "$prony" predict line.model one.csv
says the_mean_is_what_was_learnt '^RMSE  *[0-9.]*  *205$'
printf 'x,y\n5,400\n6,400\n' >same.csv
expect same_rows_have_no_differences 0 '^R² –: all 2 rows have the same y$' "$prony" predict line.model same.csv
cut -d, -f2- house.csv >bare.csv
expect id_is_not_needed 0 '^R² 0\.9' "$prony" predict house.model bare.csv
printf 'city,area\nRome,100\n' >few.csv
expect missing_column 2 "found no column 'garden'" "$prony" predict house.model few.csv
printf 'city,state,built,garden,area\nRome,good,1990,maybe,100\n' >maybe.csv
expect unknown_code 2 "maybe.csv:2:16: found 'maybe' in column garden, expected one of the 2 texts" \
    "$prony" predict house.model maybe.csv
expect no_such_model 2 "found no file 'nowhere' with weights" "$prony" predict nowhere new.csv
expect decimal_commas 0 '^test R² 0\.9' "$prony" train mlp:auto haus.csv --out haus.model
says says_the_separator '  columns separated by semicolons, decimals by commas'
printf 'Stadt;Fläche\n"Rome; IT";100,5\n' >neu.csv
expect header_in_utf_8 0 'Preis in Tsd' "$prony" predict haus.model neu.csv

# The learning curve is a picture that others can read, whatever the data is called.
cp house.csv "a<b&c.csv"
expect curve_is_drawn 0 '^learning curve in curve.svg$' "$prony" train mlp:auto "a<b&c.csv" --drop id --fill median \
    --epochs 20 --curve curve.svg
if command -v python3 >/dev/null 2>&1; then
    expect curve_is_xml 0 '^mlp:9-16-1 on a<b&c.csv$' python3 -c 'import xml.dom.minidom as x
print(x.parse("curve.svg").getElementsByTagName("title")[0].firstChild.data)'
fi
expect curve_is_not_the_model 2 'the file of --out' "$prony" train mlp:auto house.csv --drop id --fill median --out x --curve x

# The guide of a store is told that it runs; what is there afterwards is no result.
if "$prony" store create --empty --store live.db >output 2>&1; then
    expect guide_is_told 0 '^test accuracy' "$prony" train small iris --epochs 3 --store live.db
    expect no_result_is_filed 0 '^0$' sh -c "'$prony' store export --store live.db | grep -c result"' || true'
else
    echo "skip cli_csv.guide_is_told: $(head -n 1 output)"
fi

# A figure of a row that is tested moves no fill, one of a training row does.
fills() {
    for row in 2 3 4 5 6 7 8 9; do
        awk -F, -v OFS=, -v row=$row 'NR == row { $1 = 1e9 } { print }' gaps.csv >outlier.csv
        "$prony" train mlp:3-2-1 outlier.csv --fill mean --test 0.4 --epochs 1 --backend ref 2>&1 |
            sed -n 's/^means of the .* training rows: a \(.*\),.*/\1/p'
    done | sort -g | awk '$1 < 100 { low++ } $1 > 1e6 { high++ } END { print low + 0, high + 0 }'
}
printf 'a,b,c,y\n1,2,3,1.5\n2,NA,1,2\n3,3,3,3\n4,1,0,7\n5,2,9,1\n6,6,6,2.5\n7,2,1,4\n8,1,1,9\n,1,2,3\nNA,2,2,8\n' >gaps.csv
expect test_rows_move_no_fill 0 '^[1-4] [4-7]$' fills

# A resumed training ends with the same bytes.
"$prony" train mlp:9-8-1 house.csv --drop id --fill median --epochs 4 --out whole >/dev/null
"$prony" train mlp:9-8-1 house.csv --drop id --fill median --epochs 2 --out half >/dev/null
"$prony" train mlp:9-8-1 house.csv --drop id --fill median --epochs 4 --resume half --out half >/dev/null
if cmp -s whole half; then ok resumed_is_identical; else fail resumed_is_identical "files differ"; fi

# Passengers: quotes in quotes, a label in the middle, a name in each row.
awk 'BEGIN {
        print "\357\273\277Id,Survived,Class,Name,Sex,Age\r"
        for (i = 1; i <= 120; i++)
            printf "%d,%d,%s,\"Smith %d, \"\"J.\"\"\",%s,%s\r\n", i, i % 2, i % 3 ? "1st" : "3rd", i, i % 2 ? "female" : "male", i % 9 ? i % 60 : "?"
    }' >titanic.csv
expect names_are_refused 2 "titanic.csv:2:9: found 120 different texts.*column Name.*--drop Name" \
    "$prony" train mlp:auto titanic.csv --target Survived --fill mean
expect passengers_are_learnt 0 '^test accuracy 100.0 %$' "$prony" train mlp:auto titanic.csv --target Survived \
    --drop Id,Name --fill mean --out titanic.model
says says_the_baseline '^baseline: 50.0 % by always saying 0, the most frequent class$'
says says_precision '^1  *100.0 %  *100.0 %  *100.0 %  *12$'
head -n 2 titanic.csv >one.csv
expect a_class_may_be_missing 0 '^0  *-  *-  *-  *0$' "$prony" predict titanic.model one.csv

# What has more than one meaning.
printf 'day,sales\n2021-03-04,1.5\n2021-03-05,2\n' >dates.csv
expect dates_are_refused 2 "dates.csv:2:1: found '2021-03-04'.*a date or time: split it.*--drop day" "$prony" train mlp:auto dates.csv
printf 'area,price\n1,"1,200"\n2,"2,300"\n' >grouped.csv
expect thousands_are_refused 2 "grouped.csv:2:3: found the label '1,200'" "$prony" train mlp:auto grouped.csv
expect unknown_column 2 "did you mean 'area'" "$prony" train mlp:auto house.csv --drop arae
expect unknown_fill 2 "expected mean, median, zero or a number" "$prony" train mlp:auto house.csv --fill middle
exit $failures
