# prony profile and advise of a trace of 1 GB: JSON as Kineto writes it is read in at most 200 MB of
# memory.

suite=large_trace
. tests/shell/command.sh

if ! python3 -c 'import resource' 2>/dev/null; then
    echo "skip large_trace: no python3"
    exit 0
fi
room=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
if [ "$room" -lt 1500000 ]; then
    echo "skip large_trace: $folder has $room kB, expected 1.5 GB"
    exit 0
fi
python3 - "$folder/trace.json" <<'PYTHON'
import sys

names = ["void at::native::elementwise_kernel<128, 4>(int, char*)", "sm90_xmma_gemm_bf16bf16_bf16f32_tn_n_tilesize",
         "void layer_norm_kernel<float, float>(int, float)", "void softmax_warp_forward<float, 8>(float*, int)"]
with open(sys.argv[1], "w") as out:
    out.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": [\n')
    written = number = 0
    while written < 1 << 30:
        lines = []
        for _ in range(1000):
            number += 1
            at, name = 10.0 * number, names[number % len(names)]
            lines.append('{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": %.3f, '
                         '"dur": 4.125, "args": {"External id": %d, "cbid": 211, "correlation": %d}}' % (at, number, number))
            lines.append('{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %.3f, "dur": 6.500, "args": '
                         '{"External id": %d, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": %d, '
                         '"registers per thread": 32, "shared memory": 0, "blocks per SM": 3.1, "warps per SM": 12.5, '
                         '"grid": [410, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 41}}'
                         % (name, at + 3, number, number))
        text = ",\n".join(lines) + ",\n"
        out.write(text)
        written += len(text)
    out.write('{"ph": "X", "cat": "cpu_op", "name": "end", "pid": 7, "tid": 7, "ts": %.3f, "dur": 1.0}]}\n' % (10.0 * number))
PYTHON
# most COMMAND…: the most memory that the command had, in MB; $folder/said has what it said.
most() {
    python3 - "$folder/said" "$@" <<'PYTHON'
import resource, subprocess, sys
with open(sys.argv[1], "w") as out:
    ended = subprocess.run(sys.argv[2:], stdout=out, stderr=out).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
sys.exit(ended)
PYTHON
}
for command in profile advise; do
    mb=$(most "$prony" $command "$folder/trace.json")
    report ${command}_reads_it $? "$(cat "$folder/said")"
    [ "$mb" -le 200 ]
    report ${command}_takes_200_MB_at_most $? "$mb MB of $(du -m "$folder/trace.json" | cut -f1) MB"
    echo "$command: $mb MB"
done
exit $status
