# prony explain: its text against golden files, its JSON, and what it refuses. Where a change is meant,
# the command in the message makes the golden file anew.

suite=cli_explain
. tests/shell/command.sh

# golden FILE ARGUMENTS…
golden() {
    name=explain_$1 file=tests/golden/explain_$1.txt
    shift
    # without ceilings of this machine, which say what bounds an op
    XDG_CACHE_HOME=$folder/none COLUMNS=120 "$prony" explain "$@" 2>&1 | diff "$file" -
    report "$name" $? "if this is meant: XDG_CACHE_HOME=/none COLUMNS=120 prony explain $* >$file"
}
golden small small
golden small_training small --phase training --batch 3 --backend ref
golden small_unfused small --phase training --batch 3 --backend ref --no-fusion

# explains NAME PART ARGUMENTS…: what it says, errors included, contains PART.
explains() {
    name=$1 part=$2
    shift 2
    says "$name" "$part" "$prony" explain "$@"
}
explains says_it_as_json '"kind":"network","network":{"model":"small","phase":"inference","batch":1,' small --json
explains names_kernels_in_json '"kernel":"dense_f32_ref"' small --json --backend ref
explains classes_make_probabilities 'y = softmax(dense2)' mlp:4-8-3 --classes 3
explains refuses_another_phase 'expected training or inference' small --phase learning
explains refuses_another_backend "did you mean 'ref'" small --backend reff
explains needs_a_network "found 0 arguments, expected 1"
explains takes_another_loss 'binary_cross_entropy(dense2, target)' \
    mlp:4-3-1 --phase training --loss binary_cross_entropy
explains refuses_another_loss "there is no loss 'mce'; did you mean 'mse'?" small --loss mce
explains refuses_another_optimiser "there is no optimiser 'sgdd'" small --phase training \
    --optimiser sgdd

explains says_why_it_runs_op_by_op 'op by op: a layer is not small' large --backend simd
explains says_so_in_json '"whole":false,"op_by_op":"it has no kernels' small --json --backend ref
found=$("$prony" explain large --batch 13 --backend cuda 2>&1)
case $found in
*'on paper'*) holds names_the_gpu_on_paper "$found" 'on paper, as on an NVIDIA H200: ' ;;
*) echo "skip $suite.names_the_gpu_on_paper: the plugin is not in this build, or there is a GPU" ;;
esac
case $found in
*stack_grid* | *dense_*) holds says_why_on_a_gpu "$found" 'op by op: its batch is more than 12 samples' ;;
*) echo "skip $suite.says_why_on_a_gpu: the plugin is not in this build" ;;
esac
case $found in
*stack_grid* | *dense_*)
    explains says_when_one_launch_does 'one launch answers all calls' large --backend cuda \
        --scenario queued
    explains says_when_each_call_is_launched '0.30         1' small --backend cuda --scenario queued
    explains takes_binary_classifiers_whole 'one kernel runs all of these ops' mlp:4-8-1:relu \
        --backend cuda --phase training --loss binary_cross_entropy
    explains says_what_stores_probabilities 'op by op: it stores probabilities' mlp:4-64-3 \
        --backend cuda --classes 3
    ;;
*) echo "skip $suite.says_when_one_launch_does: the plugin is not in this build" ;;
esac

# Activations that are computed again: what that saves and costs, and which ops they are.
explains says_what_recompute_saves 'beside the parameters, for 1' resnet18 --phase training --recompute
explains says_it_with_a_backend 'beside the parameters, for 1' \
    resnet18 --phase training --backend ref --recompute
explains marks_what_runs_again '"made_by":"recompute"' resnet18 --phase training --recompute --json
explains says_it_in_json '"without_recompute":{"bytes":' resnet18 --phase training --recompute --json
explains says_what_recompute_cannot_save 'recompute: nothing to win' mlp:4-1 --phase training --recompute
explains recomputes_in_training_alone 'found --phase inference, expected training' resnet18 --recompute
explains orders_turns_as_train_does 'pipeline of 2 stages, gpipe' small --workers 2 --pipeline gpipe
explains recomputes_in_stages 'pipeline of 2 stages' resnet18 --workers 2 --recompute

# A network whose parameters would not fit is explained all the same: none of them is allocated.
found=$(ulimit -v 400000 && "$prony" explain wide --phase training --batch 64 --backend ref 2>&1)
holds allocates_no_parameter "$found" "param 805 MB"
exit $status
