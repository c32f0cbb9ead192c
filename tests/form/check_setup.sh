# tools/setup on systems that are not this one: a path that holds only what each case gives it.

suite=check_setup
. tests/shell/command.sh

# A system with the given commands, which do nothing, beside the few that the script itself uses.
system() {
    rm -rf "$folder/bin"
    mkdir "$folder/bin"
    for command in sh uname ls mktemp tail rm; do
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
holds without_root_it_prints_the_command "$without_root" "as root, please run:
    apt-get install --no-install-recommends gcc"
holds without_a_compiler_it_stops "$without_root" "prony cannot be built without gcc
status 1"

system gcc cmake ninja
holds elsewhere_it_names_the_packages "$(setup start)" "this is not Debian"
holds elsewhere_it_goes_on "$(setup start)" "status 0"

system gcc cmake ninja python3
command_is id 'echo 0'
command_is apt-get 'case "$*" in *npm*) echo "no npm"; exit 1 ;; esac'
holds one_missing_package_keeps_no_other_away "$(setup start)" "setup: going on without npm"
holds one_missing_package_stops_nothing "$(setup start)" "status 0"

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

holds an_unknown_goal_is_refused "$(setup everything)" "usage: tools/setup start|test|peers|mnist
status 2"
exit $status
