/**
 * Heat spreading over a plate: the explicit finite-difference scheme for the heat equation on a grid of 32-bit floats
 * (little-endian, row by row) with a border of fixed temperature. A real computation that is the same to the bit in every
 * run, and that the executable runs by itself.
 *
 *   heat.ts --input plate.f32 --width 1280 --steps 8000 --out DIR
 *   heat.ts --input plate.f32 --width 1280 --calibrate
 *
 * Writes DIR/plate-final.f32 and DIR/summary.json, a line of output per hundredth, and progress where CLIO_RELAY_EVENTS is set.
 */
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    input: { type: "string" },
    width: { type: "string" },
    steps: { type: "string" },
    out: { type: "string" },
    calibrate: { type: "boolean" },
  },
});

const bytes = fs.readFileSync(values.input!);
const width = Number(values.width);
const height = bytes.length / 4 / width;
if (!Number.isInteger(height)) throw new Error(`${bytes.length} bytes are not rows of ${width} floats`);

const DIFFUSIVITY = 0.2;

/** One step from `from` to `to`. Sums are IEEE doubles, rounded once when they are stored, so that every machine rounds alike. */
function step(from: Float32Array, to: Float32Array): void {
  for (let y = 1; y < height - 1; y++) {
    const row = y * width;
    for (let x = 1; x < width - 1; x++) {
      const i = row + x;
      const here = from[i]!;
      const around = from[i - 1]! + from[i + 1]! + from[i - width]! + from[i + width]!;
      to[i] = here + DIFFUSIVITY * (around - 4 * here);
    }
  }
}

let now: Float32Array = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
let next: Float32Array = now.slice();

const advance = (): void => {
  step(now, next);
  [now, next] = [next, now];
};

if (values.calibrate) {
  for (let i = 0; i < 50; i++) advance();
  const begin = performance.now();
  for (let i = 0; i < 150; i++) advance();
  console.log(JSON.stringify({ ms_per_step: (performance.now() - begin) / 150 }));
} else {
  run(Number(values.steps), values.out!);
}

function run(steps: number, out: string): void {
  fs.mkdirSync(out, { recursive: true });
  const report = reporter();
  console.log(`plate of ${width} x ${height}, ${steps} steps`);
  for (let done = 1; done <= steps; done++) {
    advance();
    if (Math.floor((done * 100) / steps) === Math.floor(((done - 1) * 100) / steps)) continue;
    const { mean, hottest } = measure();
    console.log(`step ${done} of ${steps}: mean ${mean.toFixed(6)}, hottest ${hottest.toFixed(6)}`);
    report(done, steps);
  }
  fs.writeFileSync(path.join(out, "plate-final.f32"), new Uint8Array(now.buffer, now.byteOffset, now.byteLength));
  fs.writeFileSync(path.join(out, "summary.json"), `${JSON.stringify({ width, height, steps, ...measure() }, null, 2)}\n`);
}

function measure(): { mean: number; hottest: number } {
  let sum = 0;
  let hottest = Number.NEGATIVE_INFINITY;
  for (const value of now) {
    sum += value;
    if (value > hottest) hottest = value;
  }
  return { mean: sum / now.length, hottest };
}

/** Appends progress lines to a file of this process's own; does nothing outside of a job. */
function reporter(): (current: number, total: number) => void {
  const directory = process.env.CLIO_RELAY_EVENTS;
  if (directory === undefined) return () => undefined;
  const file = path.join(directory, `heat-${process.pid}.jsonl`);
  return (current, total) =>
    fs.appendFileSync(file, `${JSON.stringify({ type: "progress", label: "diffusion", current, total, unit: "steps" })}\n`);
}
