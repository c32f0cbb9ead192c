// ONNX Runtime in node: what peer.py asks of it, a line of JSON each way. The loop that is timed is
// here, and calls the binding itself: session.run would put each iteration through the event loop,
// which was seen to cost 2 µs more.
'use strict';
const fs = require('fs');
const readline = require('readline');
const { binding, initOrt } = require('onnxruntime-node/dist/binding.js');
const { Tensor } = require('onnxruntime-common');

let session, feeds, fetches, output;

const requests = {
  open({ model, data, shape, batches, threads, output: name }) {
    initOrt();
    if (session) session.dispose();
    session = new binding.InferenceSession();
    session.loadModel(model, {
      executionMode: 'sequential', graphOptimizationLevel: 'all',
      intraOpNumThreads: threads, interOpNumThreads: 1,
      extra: { session: { force_spinning_stop: '1' } }, // whoever is not being timed must not spin
    });
    const bytes = fs.readFileSync(data), all = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    const size = all.length / batches;
    feeds = [...Array(batches).keys()].map(
      (i) => ({ x: new Tensor('float32', all.slice(i * size, (i + 1) * size), shape) }));
    output = name;
    fetches = session.run(feeds[0], { [output]: null }, {}); // from now on it writes there
    return { version: process.versions.node };
  },
  run({ first, count }) {
    const start = process.hrtime.bigint();
    for (let i = first; i < first + count; i++) session.run(feeds[i % feeds.length], fetches, {});
    return { elapsed_ns: Number(process.hrtime.bigint() - start) };
  },
  outputs() {
    return { values: Array.from(fetches[output].data) };
  },
};

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  let answer;
  try {
    const request = JSON.parse(line);
    answer = requests[request.do](request);
  } catch (error) {
    answer = { error: String(error.message || error) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
});
