import { expect, test } from "bun:test";
import path from "node:path";
import type { Row } from "../../bench/row.ts";

const ROWS = path.join(path.dirname(path.dirname(import.meta.dir)), "bench/rows");

test("every module of bench/rows exports a row of the module's name", async () => {
  const files = [...new Bun.Glob("*.ts").scanSync({ cwd: ROWS })];
  expect(files).toContain("start-up.ts");
  for (const file of files) {
    const { row } = (await import(path.join(ROWS, file))) as { row: Row };
    expect(row.name).toBe(path.basename(file, ".ts"));
    expect(row.run).toBeFunction();
  }
});
