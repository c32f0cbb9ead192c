# Programs that use a GPU, watched: a stand-in plays CUDA's driver and CUPTI, so that what is prony's own
# can be tested where there is no GPU: how the agent is loaded and refused, lines of Python, the file, the
# report. What the real ones do, tests/gpu/gpu_watch.sh sees.

suite=watching_gpu
. tests/shell/command.sh

cc=${CC:-cc}
"$cc" -O1 -shared -fPIC -pthread -D_GNU_SOURCE -Isrc -Wl,-soname,libcupti.so.13 \
    -o "$folder/libcupti.so.13" tests/watch/cuda_stand_in.c -ldl || exit 1
# The interpreter itself: a script that starts it would be one more process.
python=$(python3 -c 'import sys; print(sys.executable)')
watched() { # WAY: the object of its report
    "$prony" profile --once --json -- "$python" tests/watch/stand_in.py "$folder/libcupti.so.13" "$1" \
        2>"$folder/errors"
}
has() { # NAME OBJECT PART…: each part is in it
    name=$1 object=$2 missing=
    shift 2
    for part; do
        case $object in *"$part"*) ;; *) missing="$missing $part" ;; esac
    done
    [ -z "$missing" ]
    report "$name" $? "missing:$missing in $(echo "$object" | cut -c 1-1500)$(cat "$folder/errors")"
}

has counts_what_ran "$(watched pageable)" '"kernels":150,"copies":30,"fills":0,"calls":183,' \
    '"with_call":180,' '"lost":0,' '"kernels_a_step":5,' '"reason":""'
if "$prony" profile --once --json -- "$python" -c 1 2>/dev/null | grep -q 'not known here'; then
    echo "skip $suite.finds_lines: this Python is not known here"
else
    # Also in the thread without Python, which has the line on which the main thread waits for it.
    has finds_lines "$(watched pageable)" '"with_line":183,'
    "$prony" advise --once --out "$folder/run.trace" -- "$python" tests/watch/stand_in.py \
        "$folder/libcupti.so.13" pageable >"$folder/out" 2>"$folder/advice"
    has finds_the_copy "$(cat "$folder/advice")" '1  R1 copies of pageable memory' 'stand_in.py:17'
fi
has shows_the_budget "$("$prony" profile --once -- "$python" tests/watch/stand_in.py \
    "$folder/libcupti.so.13" pinned 2>&1)" '29 steps (by the kernels that repeat)' 'exposed copy' \
    'compute utilisation' 'backward'

# Both runs, and one more in which a call beats time: a step takes 9 ms, or more where others
# keep the cores busy.
has times_steps_unwatched "$("$prony" advise --json -- "$python" tests/watch/stand_in.py \
    "$folder/libcupti.so.13" pageable 2>"$folder/errors" | sed 's/"step_ns":[0-9]\{7,8\}[.,]/9 ms or more,/')" \
    '9 ms or more' '"unwatched":true'

# Killed, forked, refused: what there is, and why there is no more.
has keeps_what_a_killed_one_left "$(watched killed)" '"signal":9' '"kernels_a_step":5,' \
    'did not end by itself'
has leaves_a_forked_child_alone "$(watched fork)" '"kernels":150,' '"reason":""'
export STAND_IN_REFUSES=39
has says_who_is_first "$(watched pageable)" '"kernels":0,' 'another profiler is in the program (CUPTI error 39)'
STAND_IN_REFUSES=7
has says_that_it_was_refused "$(watched pageable)" 'CUPTI refused (error 7)'
unset STAND_IN_REFUSES
CUDA_INJECTION64_PATH=/nowhere.so has leaves_another_agent_in_place "$(
    CUDA_INJECTION64_PATH=/nowhere.so "$prony" profile --once --json -- sh -c 'echo $CUDA_INJECTION64_PATH >&2' 2>&1
)" /nowhere.so 'is set already'
# A program without CUDA has no file of the agent's, and no word of the GPU.
"$prony" profile --once -- sh -c 'ls "$PRONY_AGENT_FOLDER"' >"$folder/files" 2>"$folder/report"
! grep -q '^gpu' "$folder/files" && ! grep -qi gpu "$folder/report"
report costs_nothing_without_cuda $? "$(cat "$folder/files" "$folder/report")"
exit $status
