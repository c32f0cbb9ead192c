// node quantised.js PRONY FOLDER [FILE.safetensors FILE.onnx DATA.csv]… (DATA without a heading): operators of 8 bits, ten of each
// kind with random shapes and scales, by prony and by ONNX Runtime; and networks in 8 bits that prony
// exported. Nodes with weights of int8 are computed in integers. Levels may differ by one step: a sum that lies
// half-way between two levels goes up in our integers, to the even one in ONNX. A line for each.
'use strict';
const fs = require('fs');
const path = require('path');
const { execFileSync } = require('child_process');
const ort = require('onnxruntime-node');

const EACH = 10;
const ROWS = 3;
const FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6;
const NAMES = { [FLOAT]: 'float32', [UINT8]: 'uint8', [INT8]: 'int8', [INT32]: 'int32' };
const ARRAYS = { [FLOAT]: Float32Array, [UINT8]: Uint8Array, [INT8]: Int8Array, [INT32]: Int32Array };

let seed = 1;
function random() {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
}
const below = (n) => Math.floor(random() * n);
const count = (shape) => shape.reduce((a, b) => a * b, 1);

// The messages of onnx.proto.
function varint(number) {
  const out = [];
  let left = BigInt.asUintN(64, BigInt(number));
  for (; left > 127n; left >>= 7n) out.push(Number(left & 127n) | 128);
  return Buffer.from([...out, Number(left)]);
}
function field(number, value) {
  if (typeof value === 'number') return Buffer.concat([varint(number * 8), varint(value)]);
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}
const message = (...fields) => Buffer.concat(fields);
const dimension = (size) => field(1, typeof size === 'string' ? field(2, size) : field(1, size));
const info = (name, type, shape) =>
  message(field(1, name), field(2, field(1, message(field(1, type), field(2, message(...shape.map(dimension)))))));
const tensor = (name, type, shape, values) =>
  message(...shape.map((size) => field(1, size)), field(2, type), field(8, name),
    field(9, Buffer.from(ARRAYS[type].from(values).buffer)));
function attribute(name, value) {
  if (Array.isArray(value)) return message(field(1, name), ...value.map((v) => field(8, v)), field(20, 7));
  return message(field(1, name), field(3, value), field(20, 2));
}
const node = (op, inputs, outputs, attributes = {}) =>
  field(1, message(...inputs.map((name) => field(1, name)), ...outputs.map((name) => field(2, name)), field(3, `node_${outputs[0]}`),
    field(4, op), ...Object.entries(attributes).map(([key, value]) => field(5, attribute(key, value)))));
const model = (nodes, tensors, input, output) =>
  message(field(1, 8), field(8, message(field(1, ''), field(2, 13))),
    field(7, message(...nodes, field(2, 'g'), ...tensors.map((t) => field(5, t)), field(11, input), field(12, output))));

const scaleOf = () => Math.fround(0.002 + 0.05 * random());
const levels = (type, n) => Array.from({ length: n }, () => (type === INT8 ? below(255) - 127 : below(256)));
const zeroOf = (type) => (type === INT8 ? below(100) - 50 : below(256));

// One kind: the model, the type and the shape of a sample of its input, whether each row is run alone.
const kinds = {
  QuantizeLinear() {
    const type = below(2) ? INT8 : UINT8, sample = [2 + below(9)];
    return { sample, input: FLOAT, output: type,
      nodes: [node('QuantizeLinear', ['x', 's', 'z'], ['y'])],
      tensors: [tensor('s', FLOAT, [], [scaleOf()]), tensor('z', type, [], [zeroOf(type)])] };
  },
  DequantizeLinear() {
    const type = below(2) ? INT8 : UINT8, sample = [1 + below(4), 1 + below(5)], apart = below(2);
    const n = apart ? sample[0] : 1, shape = apart ? [n] : [];
    return { sample, input: type, output: FLOAT,
      nodes: [node('DequantizeLinear', ['x', 's', 'z'], ['y'], { axis: 1 })],
      tensors: [tensor('s', FLOAT, shape, Array.from({ length: n }, scaleOf)),
        tensor('z', type, shape, Array.from({ length: n }, () => zeroOf(type)))] };
  },
  QuantizeAndDequantizeConv() { // QDQ: ONNX Runtime makes one integer operator of it
    const made = convolution();
    return { sample: made.sample, input: FLOAT, output: FLOAT, step: made.scales[2], integers: true,
      nodes: [node('QuantizeLinear', ['x', 'xs', 'xz'], ['q']), node('DequantizeLinear', ['q', 'xs', 'xz'], ['d']),
        node('DequantizeLinear', ['w', 'ws', 'wz'], ['r'], { axis: 0 }),
        node('Conv', ['d', 'r'], ['c'], made.attributes),
        node('QuantizeLinear', ['c', 'ys', 'yz'], ['p']), node('DequantizeLinear', ['p', 'ys', 'yz'], ['y'])],
      tensors: made.tensors };
  },
  QLinearConv() {
    const made = convolution();
    return { sample: made.sample, input: UINT8, output: UINT8, integers: true,
      nodes: [node('QLinearConv', ['x', 'xs', 'xz', 'w', 'ws', 'wz', 'ys', 'yz', 'b'], ['y'], made.attributes)],
      tensors: [...made.tensors, tensor('b', INT32, [made.channels],
        Array.from({ length: made.channels }, () => below(4001) - 2000))] };
  },
  QLinearMatMul() {
    const rows = 1 + below(4), inner = 1 + below(64), columns = 1 + below(16), xs = scaleOf(), ws = scaleOf();
    return { sample: [rows, inner], input: UINT8, output: UINT8,
      nodes: [node('QLinearMatMul', ['x', 'xs', 'xz', 'w', 'ws', 'wz', 'ys', 'yz'], ['y'])],
      tensors: [tensor('xs', FLOAT, [], [xs]), tensor('xz', UINT8, [], [zeroOf(UINT8)]),
        tensor('w', UINT8, [inner, columns], levels(UINT8, inner * columns)),
        tensor('ws', FLOAT, [], [ws]), tensor('wz', UINT8, [], [zeroOf(UINT8)]),
        tensor('ys', FLOAT, [], [Math.fround(xs * ws * 128 * Math.sqrt(inner))]), tensor('yz', UINT8, [], [128])] };
  },
  ConvInteger() {
    const made = convolution(UINT8);
    return { sample: made.sample, input: UINT8, output: INT32,
      nodes: [node('ConvInteger', ['x', 'w', 'xz', 'wz0'], ['y'], made.attributes)],
      tensors: [...made.tensors, tensor('wz0', UINT8, [], [zeroOf(UINT8)])] };
  },
  MatMulInteger() {
    const rows = 1 + below(4), inner = 1 + below(64), columns = 1 + below(16);
    return { sample: [rows, inner], input: UINT8, output: INT32, integers: true,
      nodes: [node('MatMulInteger', ['x', 'w', 'xz', 'wz'], ['y'])],
      tensors: [tensor('xz', UINT8, [], [zeroOf(UINT8)]), tensor('wz', INT8, [], [0]),
        tensor('w', INT8, [inner, columns], levels(INT8, inner * columns))] };
  },
  DynamicQuantizeLinear() {
    return { sample: [1 + below(40)], input: FLOAT, output: UINT8, alone: true, outputs: ['y', 's', 'z'],
      nodes: [node('DynamicQuantizeLinear', ['x'], ['y', 's', 'z'])], tensors: [] };
  },
  DynamicMatMul() { // as onnxruntime's quantize_dynamic writes a dense layer
    const inner = 1 + below(64), columns = 1 + below(16), ws = scaleOf();
    return { sample: [inner], input: FLOAT, output: FLOAT, alone: true, step: ws,
      nodes: [node('DynamicQuantizeLinear', ['x'], ['q', 's', 'z']),
        node('MatMulInteger', ['q', 'w', 'z', 'wz'], ['i']), node('Cast', ['i'], ['f'], { to: FLOAT }),
        node('Mul', ['s', 'ws'], ['sw']), node('Mul', ['f', 'sw'], ['y'])],
      tensors: [tensor('w', INT8, [inner, columns], levels(INT8, inner * columns)), tensor('wz', INT8, [], [0]),
        tensor('ws', FLOAT, [], [ws])] };
  },
};

function convolution(weight = INT8) {
  const groups = 1 + below(2), channels = groups * (1 + below(4)), inputs = groups * (1 + below(3));
  const kernel = [1 + below(3), 1 + below(3)], sample = [inputs, kernel[0] + below(6), kernel[1] + below(6)];
  const shape = [channels, inputs / groups, ...kernel], scales = [scaleOf(), scaleOf(), 0];
  scales[2] = Math.fround(scales[0] * scales[1] * 128 * Math.sqrt(count(shape) / channels));
  const apart = weight === INT8 ? Array.from({ length: channels }, () => Math.fround(scales[1] * (0.5 + random()))) : [scales[1]];
  return { channels, sample, scales,
    attributes: { group: groups, strides: [1 + below(2), 1 + below(2)], pads: [below(2), below(2), below(2), below(2)] },
    tensors: [tensor('xs', FLOAT, [], [scales[0]]), tensor('xz', UINT8, [], [zeroOf(UINT8)]),
      tensor('w', weight, shape, levels(weight, count(shape))),
      tensor('ws', FLOAT, weight === INT8 ? [channels] : [], apart),
      tensor('wz', weight, weight === INT8 ? [channels] : [], apart.map(() => 0)),
      tensor('ys', FLOAT, [], [scales[2]]), tensor('yz', UINT8, [], [128])] };
}

function predict(prony, folder, file, rows) {
  const data = path.join(folder, 'data.csv'), out = path.join(folder, 'out.csv');
  const heading = rows[0].map((_, i) => `f${i}`).join(',');
  fs.writeFileSync(data, [heading, ...rows.map((row) => row.join(','))].join('\n') + '\n');
  execFileSync(prony, ['predict', file, data, '--label', 'none', '--out', out], { stdio: ['ignore', 'ignore', 'pipe'] });
  return fs.readFileSync(out, 'utf8').trim().split('\n').slice(1).join(',').split(',').map(Number);
}

async function asked(session, made, rows) {
  const parts = made.alone ? rows.map((row) => [row]) : [rows];
  const theirs = [];
  for (const part of parts) {
    const x = new ort.Tensor(NAMES[made.input], ARRAYS[made.input].from(part.flat()), [part.length, ...made.sample]);
    theirs.push(...(await session.run({ x })).y.data);
  }
  return theirs;
}

async function compareNode(prony, folder, kind) {
  const made = kinds[kind](), file = path.join(folder, 'node.onnx');
  const first = made.alone ? 1 : 'batch';
  const rank = made.output === INT32 || made.output === UINT8 || made.sample.length > 1 ? made.sample.length : 1;
  const shape = [first, ...Array.from({ length: rank }, (_, i) => `d${i}`)];
  fs.writeFileSync(file, model(made.nodes, made.tensors, info('x', made.input, [first, ...made.sample]), info('y', made.output, shape)));
  if (made.integers) {
    const said = execFileSync(prony, ['explain', file], { stdio: ['ignore', 'pipe', 'ignore'] }).toString();
    if (!said.includes('1 of 1 layers of products')) throw new Error(`it is not computed in integers:\n${said}`);
  }
  const session = await ort.InferenceSession.create(file, { logSeverityLevel: 4 });
  const one = () => (made.input === FLOAT ? Math.fround(8 * random() - 4) : levels(made.input, 1)[0]);
  const rows = Array.from({ length: ROWS }, () => Array.from({ length: count(made.sample) }, one));
  const theirs = await asked(session, made, rows), ours = predict(prony, folder, file, rows);
  if (ours.length !== theirs.length) throw new Error(`found ${ours.length} numbers, expected ${theirs.length}`);
  let steps = 0;
  for (let i = 0; i < ours.length; i++) {
    const off = Math.abs(ours[i] - theirs[i]), exact = made.output === INT32;
    const near = made.output === FLOAT ? 1e-5 * Math.max(1, Math.abs(theirs[i])) : 0;
    if (off <= near) continue;
    steps++;
    if (exact || off > (made.step || 1) * 1.001 + near) throw new Error(`number ${i} is ${ours[i]}, expected ${theirs[i]}`);
  }
  return [steps, ours.length];
}

// A network in 8 bits by our integers, and the file that was exported of it by theirs.
async function compareNetwork(prony, folder, saved, file, data) {
  const rows = fs.readFileSync(data, 'utf8').trim().split('\n').slice(0, 300).map((line) => line.split(',').map(Number));
  const session = await ort.InferenceSession.create(file, { logSeverityLevel: 4 });
  const { name, shape } = session.inputMetadata[0];
  const width = count(shape.slice(1)), inputs = rows.map((row) => row.slice(0, width));
  const x = new ort.Tensor('float32', Float32Array.from(inputs.flat()), [rows.length, ...shape.slice(1)]);
  const theirs = [...(await session.run({ [name]: x }))[session.outputNames[0]].data];
  const out = path.join(folder, 'out.csv');
  const csv = path.join(folder, 'rows.csv');
  fs.writeFileSync(csv, [...inputs.map((row) => row.join(','))].join('\n') + '\n');
  execFileSync(prony, ['predict', saved, csv, '--label', 'none', '--out', out], { stdio: ['ignore', 'ignore', 'pipe'] });
  const lines = fs.readFileSync(out, 'utf8').trim().split('\n').slice(1).map((line) => line.split(',').slice(-theirs.length / rows.length).map(Number));
  const ours = lines.flat(), wide = theirs.length / rows.length;
  const most = (list, row) => list.slice(row * wide, (row + 1) * wide).reduce((best, v, i, all) => (v > all[best] ? i : best), 0);
  let same = 0, off = 0;
  for (let row = 0; row < rows.length; row++) same += most(ours, row) === most(theirs, row);
  for (let i = 0; i < ours.length; i++) off = Math.max(off, Math.abs(ours[i] - theirs[i]));
  if (!(same >= 0.99 * rows.length && off <= 0.25)) throw new Error(`${same} of ${rows.length} answers are the same, numbers differ by up to ${off}`);
  return `${same} of ${rows.length} answers are the same, numbers differ by up to ${off.toPrecision(2)}`;
}

async function main([prony, folder, ...networks]) {
  let wrong = 0;
  const tell = (name, said, error) => {
    console.log(error ? `${error.stderr || error.message || error}\nFAIL quantised.${name}` : `    ${said}\nok   quantised.${name}`);
    wrong += error !== undefined;
  };
  for (const kind of Object.keys(kinds)) {
    let steps = 0, all = 0, error;
    for (let i = 0; i < EACH && !error; i++) {
      try {
        const [off, numbers] = await compareNode(prony, folder, kind);
        steps += off;
        all += numbers;
      } catch (problem) {
        error = problem;
      }
    }
    tell(kind, `${EACH} nodes, ${all} numbers, ${steps} differ by a step`, error);
  }
  for (let i = 0; i + 2 < networks.length; i += 3) {
    const [saved, file, data] = networks.slice(i);
    try {
      tell(path.basename(file), await compareNetwork(prony, folder, saved, file, data));
    } catch (problem) {
      tell(path.basename(file), '', problem);
    }
  }
  process.exit(wrong ? 1 : 0);
}
main(process.argv.slice(2));
