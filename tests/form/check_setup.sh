# tools/setup on systems that are not this one: a path that holds only what each case gives it.

suite=check_setup
. tests/shell/command.sh

# A system with the given commands, which do nothing, beside the few that the script itself uses.
system() {
    rm -rf "$folder/bin"
    mkdir "$folder/bin"
    for command in sh uname ls mktemp tail rm dirname sed tr wc fold tee date sleep stty env setsid; do
        ln -s "$(command -v $command)" "$folder/bin/$command"
    done
    for command; do
        command_is "$command" true
    done
}
command_is() { # NAME SCRIPT
    printf '#!/bin/sh\n%s\n' "$2" >"$folder/bin/$1"
    chmod +x "$folder/bin/$1"
}
setup() { # what it prints, and its exit status
    PATH=$folder/bin sh tools/setup "$@" 2>&1
    echo "status $?"
}

system apt-get
command_is id 'echo 1000'
without_root=$(setup start)
four=
for package in gcc libc6-dev cmake ninja-build; do
    [ $package = libc6-dev ] && [ -e /usr/include/stdio.h ] || four="$four $package"
done
holds without_root_it_names_what_builds_prony_alone "$without_root" "prony alone needs these; as root, please run:
    apt-get install --no-install-recommends$four
setup: the guide, ONNX files and other frameworks are left out; they need:
    "
holds without_a_compiler_it_stops "$without_root" "prony cannot be built without gcc
status 1"

system gcc cmake ninja
holds elsewhere_it_names_the_packages "$(setup start)" "this is not Debian"
holds elsewhere_it_goes_on "$(setup start)" "status 0"

system gcc cmake ninja python3
command_is id 'echo 0'
command_is apt-get 'case "$*" in *npm*) echo "no npm"; exit 1 ;; esac'
said=$(setup start)
holds one_missing_package_keeps_no_other_away "$said" "setup: going on without npm"
case $said in *"going on without nodejs"*) false ;; esac
report what_can_be_had_is_installed $? "$said"
holds one_missing_package_stops_nothing "$said" "status 0"

# What it would fetch: 3 packages of 7.5 MB, by an apt that read its lists at 2.5 MB a second.
system gcc cmake ninja python3
command_is id 'echo 0'
command_is apt-get 'case "$*" in
    *--print-uris*) for i in 1 2 3; do echo "'"'http://x/$i.deb' $i.deb 2500000 MD5Sum:0"'"; done ;;
    *update*) echo "Fetched 9,012 kB in 4s (2,500 kB/s)" ;;
    *) echo "nothing is to be installed" >&2; exit 1 ;;
    esac'
found=$(setup plan start)
case $found in
*[1-9]*" 3 8 4
status 0"*) true ;;
*) false ;;
esac
report says_how_much_it_fetches_and_how_long $? "$found"

# Ctrl-C: apt gets it, in its own time, and dpkg does not. The next command is not begun.
command_is apt-get 'case "$*" in
    *print-uris* | *update*) ;;
    *)
        trap "echo told >>'"$folder"'/apt; stop=1" INT
        echo begun >'"$folder"'/apt
        until [ "$stop" ]; do sleep 0.1; done
        sleep 0.5
        echo whole >>'"$folder"'/apt
        exit 100 ;;
    esac'
(PATH=$folder/bin exec env --default-signal=INT setsid sh tools/setup start) >"$folder/said" 2>&1 &
process=$!
await begun "$folder/apt"
kill -s INT -- "-$process"
wait $process
found="status $?, apt $(tr '\n' ' ' <"$folder/apt")"
[ "$found" = "status 130, apt begun told whole " ]
report ctrl_c_waits_for_apt $? "$found: $(cat "$folder/said")"

# NumPy and PyTorch are here, but libblas.so.3 is none that anybody made fast.
if compiler=$(command -v cc || command -v gcc || command -v clang); then
    mkdir "$folder/reference"
    echo 'void sgemm_(void) {}' >"$folder/blas.c"
    "$compiler" -shared -fPIC "$folder/blas.c" -o "$folder/reference/libblas.so.3"
    for mark in openblas_get_config bli_info_get_version_str; do
        mkdir "$folder/$mark"
        echo "void $mark(void) {}" >"$folder/blas.c"
        "$compiler" -shared -fPIC "$folder/blas.c" -o "$folder/$mark/libblas.so.3"
    done
    system gcc cmake ninja
    for goal in start test peers; do
        holds "${goal}_wants_a_fast_blas" "$(LD_LIBRARY_PATH=$folder/reference setup $goal)" " libopenblas0-pthread"
    done
    for mark in openblas_get_config bli_info_get_version_str; do
        found=$(LD_LIBRARY_PATH=$folder/$mark setup start)
        case $found in *libopenblas0-pthread*) [ ! -x /usr/bin/python3 ] ;; esac
        report "${mark}_is_a_fast_blas" $? "$found"
    done
else
    echo "skip check_setup.blas: no C compiler"
fi

holds an_unknown_goal_is_refused "$(setup everything)" "usage: tools/setup [plan] start|test|peers|mnist
status 2"
exit $status
