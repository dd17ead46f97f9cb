/**
 * Prints one table from one run: `bench/run.ts [row …] [--directory DIR] [--scale 0.1]`. Nothing here is a test: the exit code is 1
 * only where something could not be measured.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { version } from "../package.json";
import { optionsOf } from "../scripts/options.ts";
import { inMemory, machineLine, spreadDirectories } from "./machine.ts";
import type { BenchContext, Result, Row } from "./row.ts";
import { readable, table } from "./table.ts";
import { fsyncLatency } from "./yardsticks/latency.ts";

const root = path.dirname(import.meta.dir);
const { values, positionals } = optionsOf({
  options: { directory: { type: "string" }, scale: { type: "string", default: "1" } },
  allowPositionals: true,
});

async function loadRows(): Promise<Row[]> {
  const files = [...new Bun.Glob("bench/rows/*.ts").scanSync({ cwd: root })].sort();
  const modules = await Promise.all(files.map(async (file) => (await import(path.join(root, file))) as { row: Row }));
  return modules.map(({ row }) => row);
}

/** Durable work is measured on a disk; /tmp is often none. */
const placeToMeasure = (): string => values.directory ?? [os.tmpdir(), root].find((place) => !inMemory(place)) ?? os.tmpdir();

async function main(): Promise<number> {
  const rows = await loadRows();
  const unknown = positionals.filter((name) => !rows.some((row) => row.name === name));
  const scale = Number(values.scale);
  if (unknown.length > 0 || !(scale > 0)) {
    console.error(`rows: ${rows.map((row) => row.name).join(", ")}; --scale is a number above 0`);
    return 2;
  }
  const scratch = fs.mkdtempSync(path.join(placeToMeasure(), "clio-relay-bench-"));
  spreadDirectories(scratch);
  const results: Result[] = [];
  let failures = 0;
  try {
    const flush = fsyncLatency(scratch);
    console.log(`clio-relay ${version}, Bun ${Bun.version}`);
    console.log(machineLine());
    console.log(
      `${scratch}${inMemory(scratch) ? " (in memory!)" : ""}: 4 KiB + fsync ${readable(flush.p50)} ms p50, ${readable(flush.p99)} ms p99\n`,
    );
    for (const row of rows.filter((one) => positionals.length === 0 || positionals.includes(one.name))) {
      const directory = path.join(scratch, row.name);
      fs.mkdirSync(directory);
      const context: BenchContext = {
        executable: path.join(root, "dist", process.platform === "win32" ? "clio-relay.exe" : "clio-relay"),
        bun: process.execPath,
        directory,
        scale,
        note: (line) => console.error(`${row.name}: ${line}`),
      };
      context.note("measuring");
      try {
        results.push(...(await row.run(context)));
      } catch (error) {
        failures++;
        console.error(`${row.name} could not be measured:`, error);
      }
      fs.rmSync(directory, { recursive: true, force: true });
    }
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
  for (const line of table(results)) console.log(line);
  return failures === 0 ? 0 : 1;
}

process.exitCode = await main();
