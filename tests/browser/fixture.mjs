// fixture.mjs: records of two machines that never were, with everything the guide shows: frameworks,
// batches, threads, workers, samples, floors, ceilings, results that were not checked or failed.

import { writeFileSync } from "node:fs";

export const BATCHES = [1, 3, 10, 64];

export const IMPLEMENTATIONS = [
  // framework, backend, ns of a first sample, ns of each further one, checked
  ["prony", "ref", 9e6, 8e6, true],
  ["prony", "simd", 9e5, 2e5, true],
  ["numpy", "default", 2e6, 4e5, true],
  ["python-list", "default", 9e8, 9e8, false],
];

const FLOP = { inference: 24.6e6, training: 61.7e6 }; // of one sample of the large network
const BYTES = { inference: 49.3e6, training: 148e6 };

const machineOf = (server) => ({
  server,
  cpu: `CPU of ${server}`,
  cores: server === "box" ? 2 : 8,
  isa: "avx512",
  l1_bytes: 32768,
  l2_bytes: 1048576,
  l3_bytes: 33554432,
  memory_bytes: 25276518400,
  governor: "performance",
});
const softwareOf = (commit) => ({
  prony: "0.1.0",
  commit,
  compiler: "gcc 12.2.0",
  build: "release",
  system: "Debian GNU/Linux 12 (bookworm)",
});

export const timeOf = ([, , first, more], phase, batch, threads = 1) =>
  ((first + more * (batch - 1)) * (phase === "training" ? 3 : 1)) /
  (threads === 1 ? 1 : 1 + (threads - 1) * 0.85);

let minutes = 0; // each record is a minute younger than the one before

// Samples around a median: the middle one is the median itself, some are late.
function samplesOf(median) {
  return Array.from({ length: 31 }, (_, index) =>
    Math.round(
      median *
        (index % 3 === 0
          ? 1
          : index % 3 === 1
            ? 1 - 0.002 * (index % 7)
            : 1 + (index === 11 ? 0.3 : 0.003 * (index % 9))),
    ),
  );
}

export function resultLine({
  implementation,
  phase,
  batch,
  threads = 1,
  workers = 1,
  server = "box",
  commit = "aaa1111",
  scaling,
}) {
  const [framework, backend, , , checked] = implementation;
  const time = timeOf(implementation, phase, batch, threads) / (server === "box" ? 1 : 1.5);
  const median = Math.round(time * (workers > 1 ? 1.1 : 1));
  const throughput = ((batch * workers) / median) * 1e9;
  const flop = FLOP[phase] * batch;
  const bytes = BYTES[phase];
  const floor = Math.round(Math.max(flop / 118, bytes / 53) / threads);
  return JSON.stringify({
    prony: 1,
    kind: "result",
    point: {
      framework,
      backend,
      model: "large",
      phase,
      precision: "fp32",
      data: "synthetic",
      ingestion: "resident",
      batch,
      unit: "cpu",
      ...(framework === "prony" ? { unit_name: `CPU of ${server}` } : {}), // other frameworks do not say
      threads,
      affinity: "none",
      workers,
      nodes: 1,
      scenario: "iterate",
      ...(scaling ? { parallelism: "data", scaling } : {}),
      ...(phase === "training" ? { optimiser: "sgd" } : {}),
      ...(framework === "prony" ? { isa: "avx512", fusion: "on", pages: "4k" } : {}),
      server,
      software: `0.1.0 ${commit}`,
    },
    status: "ok",
    program: "0123456789abcdef",
    kernels: framework === "prony" ? ["dense_f32_avx512_8x16", "dense_sgd_f32_avx512_8x16"] : [],
    result: {
      time_ns: {
        min: Math.round(median * 0.988),
        median,
        mean: Math.round(median * 1.01),
        p90: Math.round(median * 1.02),
        p99: null,
        ci_low: Math.round(median * 0.97),
        ci_high: Math.round(median * 1.04),
        count: 31,
        per: 1,
      },
      parts_ns: {
        prepare: 1200,
        forward: median * 0.3,
        backward: median * 0.5,
        communicate: null,
        update: median * 0.2,
      },
      start_ns: 25e6,
      throughput,
      floor_ns: floor,
      bound: flop / 118 > bytes / 53 ? "flop" : "bytes",
      times_floor: median / floor,
      best_times_floor: (median * 0.988) / floor,
      flop,
      bytes,
      check: checked
        ? { verdict: "right", against: "ref", difference: 3e-7, tolerance: 1e-5 }
        : { verdict: "none", reason: "too slow to check" },
      meters: {
        cpu_utilisation: 99.5 * threads,
        peak_memory: 2.1e8,
        context_switches: 44.1234,
        energy: "not available: no counter of energy here",
      },
    },
    samples_ns: samplesOf(median),
    machine: machineOf(server),
    software: softwareOf(commit),
    at: new Date(Date.UTC(2026, 10, 15, 8, minutes++)).toISOString().replace(".000Z", "Z"),
  });
}

function machineLine(server) {
  const level = (power) => (power <= 15 ? 236e9 : power <= 20 ? 118e9 : power <= 25 ? 100e9 : 34e9);
  const memory = (ceiling, threads, share) =>
    [14, 16, 18, 20, 22, 24, 26, 28, 30].map((power) => ({
      ceiling,
      isa: "avx512",
      threads,
      pages: "2m",
      set_bytes: 2 ** power,
      per_s: level(power) * share * threads ** 0.8,
      spent_ns: 1e8,
    }));
  const peaks = (threads) =>
    [
      ["fp32", 118e9],
      ["bf16", 236e9],
      ["int8", 473e9],
    ].map(([ceiling, per_s]) => ({ ceiling, isa: "avx512", threads, per_s: per_s * threads, spent_ns: 1e8 }));
  const ceilings = [1, 2].flatMap((threads) => [
    ...peaks(threads),
    ...memory("read", threads, 1),
    ...memory("update", threads, 0.9),
  ]);
  return JSON.stringify({
    prony: 1,
    kind: "machine",
    machine: machineOf(server),
    software: softwareOf("aaa1111"),
    calibration: { ceilings },
    at: "2026-11-15T09:00:00Z",
  });
}

const [ref, simd, numpy] = IMPLEMENTATIONS;

function lines() {
  const all = [machineLine("box")];
  for (const phase of ["inference", "training"]) {
    for (const implementation of IMPLEMENTATIONS)
      for (const batch of BATCHES) all.push(resultLine({ implementation, phase, batch }));
    for (const implementation of [ref, simd, numpy])
      for (const threads of [2, 4]) all.push(resultLine({ implementation, phase, batch: 64, threads }));
  }
  for (const workers of [2, 4])
    all.push(resultLine({ implementation: simd, phase: "training", batch: 64, workers, scaling: "weak" }));
  for (const batch of BATCHES)
    all.push(
      resultLine({ implementation: simd, phase: "training", batch, server: "tower", commit: "bbb2222" }),
    );
  all.push(
    JSON.stringify({
      prony: 1,
      kind: "result",
      point: {
        framework: "prony",
        backend: "cuda",
        model: "large",
        phase: "training",
        batch: 64,
        unit: "gpu",
        server: "box",
      },
      status: "skipped",
      reason: "no CUDA driver",
      kernels: [],
      at: "2026-11-15T07:59:00Z",
    }),
  );
  for (const batch of BATCHES) all.push(resultLine({ implementation: simd, phase: "training", batch })); // the newest: what the page begins with
  return all;
}

export function writeFixture(path) {
  writeFileSync(path, lines().join("\n") + "\n");
}
