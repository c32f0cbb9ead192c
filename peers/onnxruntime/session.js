// ONNX Runtime in node: what peer.py asks of it, a line of JSON each way. The loop that is timed is
// here, and calls the binding itself: session.run would put each iteration through the event loop,
// which was seen to cost 2 µs more.
'use strict';
const fs = require('fs');
const readline = require('readline');
const { binding, initOrt } = require('onnxruntime-node/dist/binding.js');
const { Tensor } = require('onnxruntime-common');

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array,
  uint64: BigUint64Array, bool: Uint8Array,
};
let session, opened, feeds, calls, outputs, fetches, blank, last;

function feed(bytes, inputs) {
  return Object.fromEntries(inputs.map(({ name, type, shape, at, bytes: length }) => {
    const own = bytes.buffer.slice(bytes.byteOffset + at, bytes.byteOffset + at + length);
    return [name, new Tensor(type, new arrays[type](own), shape)];
  }));
}

function load(options) {
  const made = new binding.InferenceSession();
  made.loadModel(opened.model, options);
  return made;
}

// Outputs are written where those of the first call lie, unless their sizes depend on the data.
function call(one) {
  if (fetches !== blank) {
    try {
      session.run(one, fetches, {});
      return fetches;
    } catch {
      fetches = blank;
    }
  }
  return session.run(one, blank, {});
}

function plain(tensor) {
  const values = Array.from(tensor.data, Number);
  return { values, shape: tensor.dims };
}

const requests = {
  open({ model, data, feeds: every, calls: each, threads, outputs: names }) {
    initOrt();
    if (session) session.dispose();
    opened = { model, options: {
      executionMode: 'sequential', graphOptimizationLevel: 'all',
      intraOpNumThreads: threads, interOpNumThreads: 1,
      extra: { session: { force_spinning_stop: '1' } }, // whoever is not being timed must not spin
    } };
    session = load(opened.options);
    const bytes = fs.readFileSync(data);
    feeds = every.map((inputs) => feed(bytes, inputs));
    calls = each;
    outputs = names;
    blank = Object.fromEntries(names.map((name) => [name, null]));
    fetches = session.run(feeds[0], blank, {}); // from now on it writes there
    return { version: process.versions.node };
  },
  watch({ notes, changed, count }) { // the same in a session that notes what each node takes
    const own = session;
    session = load({ ...opened.options, enableProfiling: true, profileFilePrefix: notes,
      optimizedModelFilePath: changed });
    for (let i = 0; i < count * calls; i++) call(feeds[i % feeds.length]);
    session.endProfiling();
    session.dispose();
    session = own;
    return {};
  },
  run({ first, count }) {
    const start = process.hrtime.bigint();
    for (let i = first * calls; i < (first + count) * calls; i++) call(feeds[i % feeds.length]);
    const elapsed_ns = Number(process.hrtime.bigint() - start);
    last = ((first + count - 1) * calls) % feeds.length;
    return { elapsed_ns };
  },
  outputs() { // once more: each call wrote over the one before
    return { calls: feeds.slice(last, last + calls).map((one) => plain(call(one)[outputs[0]])) };
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
