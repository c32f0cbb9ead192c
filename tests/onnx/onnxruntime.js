// node onnxruntime.js PRONY FOLDER MODEL.onnx…: does ONNX Runtime say of random inputs what prony says
// of the same file? Rows are given three at once: how many is left open in the file. A line for each.
'use strict';
const fs = require('fs');
const path = require('path');
const { execFileSync } = require('child_process');
const ort = require('onnxruntime-node');

const ROWS = 3;
const tolerance = 1e-4;

let seed = 1;
function random() {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 31 - 1;
}

// Below which the tokens of a model are: as many as the first table has rows; none may be needed.
function tokensOf(prony, model) {
  const said = execFileSync(prony, ['explain', model, '--json'], { encoding: 'utf8', maxBuffer: 2 ** 28 });
  const { ops, tensors } = JSON.parse(said).network.programs[0];
  const taken = ops.find(({ op }) => op === 'gather');
  return taken ? tensors[taken.inputs[0]].shape.at(-2) : 1;
}

async function compare(prony, folder, model) {
  const session = await ort.InferenceSession.create(model, { graphOptimizationLevel: 'basic', logSeverityLevel: 4 });
  const { name, type, shape } = session.inputMetadata[0];
  const size = shape.slice(1).reduce((a, b) => a * b, 1);
  const whole = type === 'int32';
  const tokens = whole ? tokensOf(prony, model) : 0;
  const values = Array.from({ length: ROWS * size }, () => (whole ? Math.floor(((random() + 1) / 2) * tokens) : Math.fround(random())));
  const data = path.join(folder, 'data.csv'), out = path.join(folder, 'out.csv');
  const lines = [Array.from({ length: size }, (_, i) => `f${i}`).join(',')];
  for (let row = 0; row < ROWS; row++) lines.push(values.slice(row * size, (row + 1) * size).join(','));
  fs.writeFileSync(data, lines.join('\n') + '\n');
  const typed = whole ? Int32Array.from(values) : Float32Array.from(values);
  const results = await session.run({ [name]: new ort.Tensor(type, typed, [ROWS, ...shape.slice(1)]) });
  const theirs = results[session.outputNames[0]].data;
  execFileSync(prony, ['predict', model, data, '--out', out], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ours = fs.readFileSync(out, 'utf8').trim().split('\n').slice(1).join(',').split(',').map(Number);
  if (ours.length !== theirs.length) return `found ${ours.length} numbers, expected ${theirs.length}`;
  for (let i = 0; i < ours.length; i++)
    if (!Object.is(ours[i], theirs[i]) && !(Math.abs(ours[i] - theirs[i]) <= tolerance * Math.max(1, Math.abs(theirs[i]))))
      return `number ${i} is ${ours[i]}, expected ${theirs[i]}`;
  return '';
}

async function main([prony, folder, ...models]) {
  let wrong = 0;
  for (const model of models) {
    let said;
    try {
      said = await compare(prony, folder, model);
    } catch (error) {
      said = String(error.stderr || error.message || error).trim();
    }
    const name = `slow_onnxruntime.${path.basename(model, '.onnx')}`;
    console.log(said ? `${said}\nFAIL ${name}` : `ok   ${name}`);
    wrong += said !== '';
  }
  process.exit(wrong ? 1 : 0);
}
main(process.argv.slice(2));
