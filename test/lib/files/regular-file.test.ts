import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { openRegular, openRegularHandle, readRegular, readSmallFile, regularSize } from "../../../src/lib/files/regular-file.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const temporary = temporaryDirectories();

describe("a regular file", () => {
  test("is opened, measured and read up to its bound", async () => {
    const file = path.join(temporary(), "a");
    fs.writeFileSync(file, "é and more");
    const opened = openRegular(file);
    if (typeof opened === "string") throw new Error(opened);
    expect(opened.size).toBe(11);
    fs.closeSync(opened.fd);
    const handle = await openRegularHandle(file);
    if (typeof handle === "string") throw new Error(handle);
    expect(await handle.readFile("utf8")).toBe("é and more");
    await handle.close();
    expect(regularSize(file)).toBe(11);
    expect(readRegular(file, 11)).toEqual({ text: "é and more" });
    expect(readRegular(file, 10)).toBe("too_large");
    fs.writeFileSync(file, "");
    expect(readRegular(file, 0)).toEqual({ text: "" });
  });

  test("of the system, which says a size of 0, is read up to the bound all the same", () => {
    expect(readRegular("/proc/self/stat", 10)).toBe("too_large");
    expect(readRegular("/proc/self/comm", 4_096)).toMatchObject({ text: expect.stringMatching(/.+/) });
  });

  test("that is missing, or would be below a file, is absent", async () => {
    const file = path.join(temporary(), "a");
    fs.writeFileSync(file, "");
    for (const absent of [`${file}2`, `${file}/b`]) {
      expect(openRegular(absent)).toBe("absent");
      expect(await openRegularHandle(absent)).toBe("absent");
      expect(regularSize(absent)).toBe("absent");
      expect(readRegular(absent, 9)).toBe("absent");
    }
    expect(readSmallFile(`${file}2`, 9)).toBeNull();
  });
});

describe("in the place of a regular file", () => {
  const kinds: Record<string, (file: string) => unknown> = {
    "a named pipe that nobody writes to": (file) => expect(Bun.spawnSync(["mkfifo", file]).exitCode).toBe(0),
    "a directory": (file) => fs.mkdirSync(file),
    "a link to a device": (file) => fs.symlinkSync("/dev/zero", file),
    "a link to itself": (file) => fs.symlinkSync(file, file),
    "a link to a file": (file) => {
      fs.writeFileSync(`${file}.other`, "other");
      fs.symlinkSync(`${file}.other`, file);
    },
    "a socket": (file) => new Promise<void>((resolve) => net.createServer().listen(file, resolve).unref()),
  };

  test.each(Object.entries(kinds))("%s is told apart, and nothing waits for it", async (name, put) => {
    const file = path.join(temporary(), "f");
    await put(file);
    expect(openRegular(file)).toBe("not_a_file");
    expect(await openRegularHandle(file)).toBe("not_a_file");
    expect(regularSize(file)).toBe("not_a_file");
    expect(readRegular(file, 100)).toBe("not_a_file");
    if (name === "a link to a file") expect(readSmallFile(file, 100)).toBe("other");
    else expect(() => readSmallFile(file, 100)).toThrow(RangeError);
  });
});
