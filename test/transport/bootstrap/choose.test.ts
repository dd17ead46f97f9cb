import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isRelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { openArtifact, type Platform } from "../../../src/transport/bootstrap/artifact.ts";
import { chooseArtifact, compareVersions, neededFile, refuseUnfit } from "../../../src/transport/bootstrap/choose.ts";
import type { HostProbe } from "../../../src/transport/bootstrap/probe.ts";
import { refuseOwned } from "../../../src/transport/bootstrap/worker.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { fitting, program } from "./host.ts";

const directories = temporaryDirectories();

function codeOf(work: () => unknown): string {
  try {
    work();
    return "none";
  } catch (error) {
    if (!isRelayError(error)) throw error;
    return `${error.code} ${error.data["reason"] ?? ""}`.trim();
  }
}

const with_ = (change: Partial<HostProbe>, storage: Partial<HostProbe["storage"]> = {}): HostProbe => {
  const probe = fitting(change);
  return { ...probe, storage: { ...probe.storage, ...storage } };
};

test.each<[string, HostProbe, string]>([
  ["what fits", fitting(), "none"],
  ["an old glibc that will do", with_({ libc_version: "2.17" }), "none"],
  ["a glibc that is too old", with_({ libc_version: "2.12" }), "host_unfit libc"],
  ["another system", with_({ os: "FreeBSD" }), "host_unfit platform"],
  ["another processor", with_({ machine: "other", machine_name: "ppc64le" }), "host_unfit platform"],
  ["a read-only home", with_({}, { writable: false, read_only: true }), "host_unfit read_only"],
  ["a home of somebody else", with_({}, { writable: false }), "host_unfit unwritable"],
  ["a full home", with_({}, { writable: false, free_bytes: 0 }), "storage_admission_refused no_room"],
  ["a home without execution", with_({}, { starts: false }), "host_unfit noexec"],
  ["something in the way", with_({ installation: { ...fitting().installation, foreign: "/x/current" } }), "host_unfit foreign"],
])("a host with %s", (_, probe, code) => {
  expect(codeOf(() => refuseUnfit(probe))).toBe(code);
});

describe("the executable that is sent", () => {
  const made = (platform: Partial<Platform>, name: string) => ({
    ...program(name, { platform: { os: "linux", machine: "x64", libc: "glibc", baseline: null, ...platform } }),
    file: name,
  });
  const candidates = [
    made({}, "x64"),
    made({ machine: "arm64" }, "arm64"),
    made({ libc: "musl" }, "musl"),
    made({ baseline: true }, "baseline"),
    made({ os: "other" }, "darwin"),
  ];

  test.each<[string, Partial<HostProbe>, string, string]>([
    ["x64", {}, "x64", "clio-relay-linux-x64"],
    ["arm64", { machine: "arm64", avx2: false }, "arm64", "clio-relay-linux-arm64"],
    ["musl", { libc: "musl" }, "musl", "clio-relay-linux-x64-musl"],
    ["an old processor", { avx2: false }, "baseline", "clio-relay-linux-x64-baseline"],
    ["a C library that cannot be told", { libc: "unknown" }, "x64", "clio-relay-linux-x64"],
  ])("for %s", (_, change, file, needed) => {
    const probe = fitting(change);
    expect(chooseArtifact(probe, candidates).file).toBe(file);
    expect(neededFile(probe)).toBe(needed);
    const others = candidates.filter((one) => one.file === "darwin");
    expect(codeOf(() => chooseArtifact(probe, others))).toBe("artifact_unfit");
    expect(codeOf(() => chooseArtifact(probe, []))).toBe("artifact_unfit");
  });

  test("is known by its header", async () => {
    expect((await openArtifact(process.execPath)).platform).toEqual({
      os: "linux",
      machine: process.arch as "x64",
      libc: "glibc",
      baseline: null,
    });
    const directory = directories();
    const elf = Buffer.alloc(256);
    elf.writeUInt32BE(0x7f454c46);
    elf[4] = 2;
    elf[5] = 1;
    elf.writeUInt16LE(183, 18);
    elf.writeBigUInt64LE(64n, 32);
    elf.writeUInt16LE(56, 54);
    elf.writeUInt16LE(1, 56);
    elf.writeUInt32LE(3, 64);
    elf.writeBigUInt64LE(128n, 72);
    elf.writeBigUInt64LE(32n, 96);
    elf.write("/lib/ld-musl-aarch64.so.1\0", 128);
    const file = path.join(directory, "clio-relay-baseline");
    fs.writeFileSync(file, elf);
    const artifact = await openArtifact(file);
    expect(artifact).toMatchObject({
      digest: sha256Hex(elf),
      size: 256,
      platform: { os: "linux", machine: "arm64", libc: "musl", baseline: true },
    });
    // Sections whose table ends with the file, or a byte later.
    elf.writeBigUInt64LE(128n, 40);
    elf.writeUInt16LE(64, 58);
    elf.writeUInt16LE(2, 60);
    fs.writeFileSync(file, elf);
    expect((await openArtifact(file)).size).toBe(256);
    fs.writeFileSync(file, elf.subarray(0, 255));
    await expect(openArtifact(file)).rejects.toMatchObject({
      code: "artifact_unfit",
      data: { size_bytes: 255, whole_bytes: 256 },
      hint: expect.stringContaining("SHA256SUMS"),
    });
    elf.writeUInt16LE(0, 60);
    // Program headers that lead out of the file.
    elf.writeBigUInt64LE(2n ** 63n, 32);
    fs.writeFileSync(file, elf);
    expect((await openArtifact(file)).platform.libc).toBe("other");
    const parts: Uint8Array[] = [];
    for await (const part of artifact.read(250)) parts.push(part);
    expect(Buffer.concat(parts)).toEqual(elf.subarray(250));
    fs.writeFileSync(file, "#!/bin/sh\n");
    expect((await openArtifact(file)).platform.os).toBe("other");
    for (const bad of [path.join(directory, "none"), directory, "/dev/null"]) {
      const error: unknown = await openArtifact(bad).catch((thrown: unknown) => thrown);
      expect([bad, isRelayError(error) && error.code]).toEqual([bad, bad.endsWith("none") ? "local_file_missing" : "artifact_unfit"]);
    }
  });
});

test("a queue that somebody owns", () => {
  const process = { pid: 7, start_time: 1, boot_id: "b", hostname: "login1" };
  const owned = (worker: Partial<NonNullable<HostProbe["worker"]>>): HostProbe =>
    fitting({ worker: { process, since: null, here: true, alive: true, program: "/usr/bin/bun", digest: null, ...worker } });
  expect(codeOf(() => refuseOwned(fitting()))).toBe("none");
  expect(codeOf(() => refuseOwned(owned({ digest: "a".repeat(64) })))).toBe("none");
  expect(codeOf(() => refuseOwned(owned({ alive: false })))).toBe("none");
  expect(codeOf(() => refuseOwned(owned({})))).toBe("queue_owned");
  expect(codeOf(() => refuseOwned(owned({ here: false, alive: null })))).toBe("wrong_login_node");
});

test("versions are compared by their numbers", () => {
  expect([compareVersions("1.2.3", "1.10.0"), compareVersions("2.0.0", "1.9.9"), compareVersions("1.0.0-rc.1", "1.0.0")]).toEqual([
    -8, 1, 0,
  ]);
  expect(compareVersions("none", "1.0.0")).toBeNull();
});
