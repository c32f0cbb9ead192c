# 200 random networks, each shared out among two to five ranks: by weights and by samples they learn what
# one worker learns, as a pipeline bit for bit.

suite=splits
. tests/shell/command.sh
for test in split_model workers pipeline; do
    PRONY_RANDOM_NETWORKS=200 "$PRONY_BUILD/tests/test_$test" random_networks_agree
    report "by_$test" $? "test_$test failed"
done
exit $status
