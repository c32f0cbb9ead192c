# What can be named, and what is named wrongly: `prony networks`, `prony suites`, the list of commands.

suite=cli_lists
. tests/shell/command.sh

# wide NAME COLUMNS COMMAND…: no line of it is wider than that many characters.
narrow() {
    name=$1 columns=$2
    shift 2
    found=$(COLUMNS=$columns "$@" 2>&1 | iconv -f UTF-8 -t UTF-32LE | od -An -v -tu4 -w4 |
        awk -v most="$columns" '$1 == 10 { if (n > most) bad++; n = 0; next } { n++ } END { print bad + 0 }')
    [ "$found" = 0 ]
    report "$name" $? "$found lines are wider than $columns"
}

networks=$("$prony" networks)
for file in src/nn/zoo/*.net; do
    model=$(basename "$file" .net)
    case $networks in *"
$model "*) ;; *) holds "lists_$model" "$networks" "$model" ;; esac
done
holds says_what_it_is "$networks" 'ResNet-50'
holds counts_parameters "$(echo "$networks" | grep '^resnet50 ')" '25.6 M'
holds counts_flop "$(echo "$networks" | grep '^small ')" ' 62      124  '
holds names_the_form_mlp "$networks" 'mlp:4-16-3'
[ "$(echo "$networks" | grep -c '^ ')" = 0 ]
report a_network_is_a_line $? "$(echo "$networks" | grep -B1 '^ ')"
holds lists_what_is_named "$("$prony" networks mlp:784-100-10)" '79.5 k'
expect refuses_what_is_none 2 "did you mean 'small'" "$prony" networks smal

suites=$("$prony" suites)
for file in suites/*.suite; do
    name=$(basename "$file" .suite)
    case $suites in *"
$name "*) ;; *) holds "lists_suite_$name" "$suites" "$name" ;; esac
done
[ "$(echo "$suites" | grep -c '^ ')" = 0 ]
report a_suite_is_a_line $? "$(echo "$suites" | grep -B1 '^ ')"
holds counts_a_suites_results "$(echo "$suites" | grep '^threads ')" '     8 '
echo "$suites" | grep -qE '^demo +[0-9]+ +([0-9]+ h )?([0-9]+ min ?)?([0-9]+ s)?  A first'
report says_how_long_it_takes $? "$(echo "$suites" | grep '^demo ')"

expect suggests_a_network 2 "did you mean 'large'? (prony networks lists all)" "$prony" bench larg
expect names_the_list_of_networks 2 'one that prony networks lists' "$prony" explain qqqqq
expect suggests_a_suite 2 "did you mean 'demo'? (prony suites lists all)" "$prony" suite dmo
expect names_the_list_of_suites 2 'one that prony suites lists' "$prony" suite qqqqq

# The list of commands is grouped, and nothing that helps is wider than 80 columns.
holds groups_commands "$("$prony" help)" '
Understand
'
expect no_command_lists_them 0 'Measure' "$prony"
for command in $("$prony" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    narrow "help_of_${command}_fits" 80 "$prony" "$command" --help all
    holds "help_of_${command}_begins_with_it" "$("$prony" help "$command")" "prony $command: "
done
narrow help_fits 80 "$prony" help
narrow networks_fit 80 "$prony" networks
narrow suites_fit 80 "$prony" suites
narrow networks_fit_a_narrow_line 60 "$prony" networks
exit $status
