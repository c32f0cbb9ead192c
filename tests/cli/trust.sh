# Plugins, peers and suites that somebody else could have put there are not run; the message names
# the file, its owner and the remedy.

suite=trust
. tests/shell/command.sh
chmod 755 "$folder"
cp "$prony" "$folder/prony" || exit 2
mine=$folder/prony
mkdir "$folder/peer" "$folder/open"
printf '#!/bin/sh\ntouch "%s/was_run"\n' "$folder" >"$folder/peer/peer"
chmod 755 "$folder/peer/peer"
bench() {
    "$mine" bench small --phase inference --framework "$1" --seconds 0.02 --patience 1
}
run_nothing() { # NAME
    test ! -e "$folder/was_run"
    report "$1" $? 'it was run'
    rm -f "$folder/was_run"
}

bench "$folder/peer/peer" >/dev/null 2>&1
test -e "$folder/was_run"
report runs_a_peer_of_its_own $? 'it was not run'
rm -f "$folder/was_run"

chmod o+w "$folder/peer/peer"
says refuses_a_peer_others_write "$folder/peer/peer (user $(id -u), mode 0757): others may write it and decide what you run: chmod o-w it" \
    bench "$folder/peer/peer"
run_nothing runs_no_peer_others_write
chmod o-w "$folder/peer/peer"
chmod o+w "$folder/peer"
says refuses_a_peer_in_a_folder_others_write "$folder/peer (user" bench "$folder/peer/peer"
run_nothing runs_no_peer_in_a_folder_others_write
chmod o-w "$folder/peer"

echo 'no machine code' >"$folder/prony_guest.so"
chmod o+w "$folder/prony_guest.so"
expect refuses_a_plugin_others_write 1 "the backend 'guest': $folder/prony_guest.so (user" \
    "$mine" train small iris --backend guest
chmod o-w "$folder/prony_guest.so"
expect looks_at_a_plugin_of_its_own 1 "the backend 'guest': cannot be loaded: $folder/prony_guest.so" \
    "$mine" train small iris --backend guest

echo 'bench small --seconds 0.01' >"$folder/open/list.suite"
chmod o+w "$folder/open"
expect refuses_a_suite_in_a_folder_others_write 2 "$folder/open (user" "$mine" suite "$folder/open/list.suite"
rm "$folder/prony_guest.so"

# A link may be turned elsewhere after the check: the file that was checked is opened, by its own path.
mkdir "$folder/links" "$folder/libraries"
printf '#!/bin/sh\necho "$0" >"%s/was_run"\n' "$folder" >"$folder/peer/tells"
chmod 755 "$folder/peer/tells"
ln -s ../peer/tells "$folder/links/peer"
bench "$folder/links/peer" >/dev/null 2>&1
holds starts_the_file_it_checked "$(cat "$folder/was_run")" "$folder/peer/tells"
rm -f "$folder/was_run"
echo 'no machine code' >"$folder/libraries/guest.so"
ln -s libraries/guest.so "$folder/prony_guest.so"
says loads_the_file_it_checked "cannot be loaded: $folder/libraries/guest.so" "$mine" train small iris --backend guest
rm "$folder/prony_guest.so"
ln -s ../peer "$folder/links/list.suite"
says reads_the_file_it_checked "$folder/peer: found a folder" "$mine" suite "$folder/links/list.suite"
ln -s circle "$folder/links/circle"
expect refuses_links_in_a_circle 1 'cannot follow the path' "$mine" suite "$folder/links/circle"

# A peer loads the files beside it, and those in peers/.
echo 'import os' >"$folder/peer/module.py"
chmod o+w "$folder/peer/module.py"
says refuses_a_module_others_write "$folder/peer/module.py (user" bench "$folder/peer/peer"
run_nothing runs_no_peer_beside_a_module_others_write
rm "$folder/peer/module.py"
mkdir -p "$folder/tree/build" "$folder/tree/peers/mine"
cp "$prony" "$folder/tree/build/prony"
cp "$folder/peer/peer" "$folder/tree/peers/mine/peer"
echo 'import os' >"$folder/tree/peers/shared.py"
chmod o+w "$folder/tree/peers/shared.py"
mine=$folder/tree/build/prony
says refuses_a_shared_module_others_write "peers/shared.py (user" bench mine
run_nothing runs_no_peer_with_a_module_others_write
says names_it_among_the_frameworks "peers/shared.py (user" "$mine" machine
chmod o-w "$folder/tree/peers/shared.py"
bench mine >/dev/null 2>&1
test -e "$folder/was_run"
report runs_a_peer_with_modules_of_its_own $? 'it was not run'
rm -f "$folder/was_run"
mine=$folder/prony

if [ "$(id -u)" = 0 ]; then
    chown 65534 "$folder/peer/peer"
    says refuses_a_peer_of_another "$folder/peer/peer belongs to user 65534, who decides what you run; expected root, you (0)" \
        bench "$folder/peer/peer"
    run_nothing runs_no_peer_of_another
    chgrp 12345 "$folder/peer/peer"
    chown root "$folder/peer/peer"
    chmod 775 "$folder/peer/peer"
    says refuses_a_peer_that_another_group_writes 'others may write it and decide what you run: chmod go-w it' bench "$folder/peer/peer"
    chgrp 0 "$folder/peer/peer"
    bench "$folder/peer/peer" >/dev/null 2>&1
    test -e "$folder/was_run"
    report runs_a_peer_that_its_own_group_writes $? 'it was not run'
    rm -f "$folder/was_run"
    chown 65534 "$folder" "$folder/peer" "$folder/peer/peer" "$folder/prony"
    bench "$folder/peer/peer" >/dev/null 2>&1
    test -e "$folder/was_run"
    report runs_a_peer_of_whom_it_belongs_to $? 'it was not run'
else
    echo "skip trust.others: only root can give files to another user"
fi
exit $status
