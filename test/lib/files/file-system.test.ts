import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import { fileSystemKind, isSurelyLocal, isThere, kindIn } from "../../../src/lib/files/file-system.ts";
import { requireComponent } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";

const TABLE = [
  "22 1 252:0 / / rw,relatime shared:1 - ext4 /dev/vda rw",
  "23 22 0:21 / /proc rw - proc proc rw",
  "40 22 0:35 / /home rw shared:9 master:2 - nfs4 server:/home rw,vers=4.2",
  "41 40 0:36 / /home/ann/scratch\\040disk rw - lustre mgs@tcp:/scratch rw",
  "42 22 0:37 / /mnt rw - xfs /dev/vdb rw",
  "43 42 0:38 / /mnt rw - tmpfs tmpfs rw",
  "",
].join("\n");

describe("fileSystemKind", () => {
  test("is that of the innermost mount above the path", () => {
    expect(kindIn(TABLE, "/var/lib")).toBe("ext4");
    expect(kindIn(TABLE, "/home/ann/x")).toBe("nfs4");
    expect(kindIn(TABLE, "/home")).toBe("nfs4");
    expect(kindIn(TABLE, "/homestead")).toBe("ext4");
    expect(kindIn(TABLE, "/home/ann/scratch disk/core")).toBe("lustre");
  });

  test("is that of the later of two mounts on one point", () => {
    expect(kindIn(TABLE, "/mnt/x")).toBe("tmpfs");
  });

  test("is unknown in a table that says nothing", () => {
    expect(kindIn("", "/x")).toBe("unknown");
    expect(kindIn("garbage - ", "/x")).toBe("unknown");
  });

  test.skipIf(!requireComponent("linux"))("finds /proc, and what does not exist yet through its parent", () => {
    expect(fileSystemKind("/proc/self")).toBe("proc");
    expect(fileSystemKind("/proc/no/such/thing")).toBe("proc");
  });
});

test.skipIf(!requireComponent("linux"))("what is surely local is no file system of the kernel's own, and is there", () => {
  using directory = temporaryDirectory();
  expect(isSurelyLocal(directory.path)).toBe(true);
  expect(isSurelyLocal("/proc/self")).toBe(false);
  expect(isSurelyLocal(`${directory.path}/none`)).toBe(false);
});

test("what cannot be looked at is not absent", () => {
  using directory = temporaryDirectory();
  const at = (name: string): string => `${directory.path}/${name}`;
  expect(isThere(at("none"))).toBe(false);
  fs.writeFileSync(at("file"), "");
  expect(isThere(at("file"))).toBe(true);
  expect(isThere(at("file/below"))).toBe(false);
  fs.symlinkSync("loop", at("loop"));
  expect(isThere(at("loop"))).toBe(true);
  expect(() => isThere(at("loop/below"))).toThrow("ELOOP");
});
