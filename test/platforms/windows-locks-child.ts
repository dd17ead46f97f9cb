/** On Windows: locks the file and says `locked` or `held`; asked to stay, it keeps the lock until it is killed. */
import fs from "node:fs";
import { writeFileAtomic } from "../../src/lib/files/atomic-file.ts";
import { tryLock } from "../../src/lib/files/file-lock.ts";
import { identify, isAlive } from "../../src/lib/system/process-identity.ts";

const [file = "", command = ""] = process.argv.slice(2);
const lock = tryLock(file);
fs.writeFileSync(1, `${lock === null ? "held" : "locked"}\n`);
if (command === "release" && lock !== null) {
  lock.release();
  const again = tryLock(file);
  fs.writeFileSync(1, `${again === null ? "held" : "again"}\n`);
}
if (command === "stay") {
  // Content stays readable and writable for others.
  fs.appendFileSync(file, "written while locked\n");
  fs.writeFileSync(`${file}.pid`, String(process.pid));
  await Bun.sleep(60_000);
}
if (command === "identity") {
  const pid = Number(fs.readFileSync(`${file}.pid`, "utf8"));
  const other = identify(pid);
  const [alive, impostor] = other === null ? [false, false] : [isAlive(other), isAlive({ ...other, start_time: other.start_time - 1 })];
  fs.writeFileSync(1, `${JSON.stringify({ other, alive, impostor, content: fs.readFileSync(file, "utf8") })}\n`);
}
if (command === "replace") {
  // A reader has the target open for a moment; Windows refuses a rename onto it as long as it does.
  const reader = Bun.spawn([process.execPath, import.meta.path, file, "read"], { stdout: "pipe", env: process.env });
  await reader.stdout.getReader().read();
  writeFileAtomic(`${file}.target`, "new");
  fs.writeFileSync(1, `${fs.readFileSync(`${file}.target`, "utf8")}\n`);
}
if (command === "read") {
  const fd = fs.openSync(`${file}.target`, "r");
  fs.writeFileSync(1, "open\n");
  await Bun.sleep(300);
  fs.closeSync(fd);
}
