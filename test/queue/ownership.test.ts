import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isRelayError, type RelayError } from "../../src/domain/errors.ts";
import { type Identity, identify, self } from "../../src/lib/system/process-identity.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { acquireOwnership, type OwnershipOptions } from "../../src/queue/ownership.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const makeDirectory = temporaryDirectories();
const ME: OwnershipOptions = {
  identity: self(),
  endpointId: "endpoint_me",
  takeOver: false,
  confirmHostDead: false,
  clock: systemClock,
};

const recordOf = (directory: string) => path.join(directory, "owner.json");

function writeOwner(directory: string, identity: Identity): void {
  fs.writeFileSync(recordOf(directory), JSON.stringify({ ...identity, endpoint_id: "endpoint_before", since: "2030-01-01T00:00:00.000Z" }));
}

function refusal(directory: string, options: Partial<OwnershipOptions> = {}): RelayError {
  try {
    acquireOwnership(directory, { ...ME, ...options }).release();
  } catch (error) {
    if (isRelayError(error, "queue_owned")) return error;
    throw error;
  }
  throw new Error("the queue was given away");
}

const ANOTHER_HOST: Identity = { pid: 77, start_time: 5, boot_id: "11111111-2222-3333-4444-555555555555", hostname: "login-9" };

describe("ownership", () => {
  test("is put on record, and gone when it was let go of", () => {
    const directory = path.join(makeDirectory(), "core");
    const ownership = acquireOwnership(directory, ME);
    const record = JSON.parse(fs.readFileSync(recordOf(directory), "utf8"));
    expect(record).toEqual({ ...self(), endpoint_id: "endpoint_me", since: expect.stringMatching(/^\d{4}-.*Z$/), database_open: false });
    expect(fs.statSync(recordOf(directory)).mode & 0o777).toBe(0o600);
    ownership.release();
    ownership.release();
    expect(fs.existsSync(recordOf(directory))).toBe(false);
    expect(() => acquireOwnership(directory, ME).release()).not.toThrow();
  });

  test("a second owner in the same process is refused, naming the first", () => {
    const directory = makeDirectory();
    const ownership = acquireOwnership(directory, ME);
    const error = refusal(directory, { endpointId: "endpoint_other" });
    expect(error.data).toMatchObject({ hostname: self().hostname, pid: process.pid, endpoint_id: "endpoint_me" });
    expect(error.message).toContain(`process ${process.pid} on ${self().hostname}, since ${error.data["since"]}`);
    ownership.release();
  });

  test("another process is refused while the owner lives, and takes over when it was killed", async () => {
    const directory = makeDirectory();
    const owner = Bun.spawn([process.execPath, path.join(import.meta.dir, "owning-child.ts"), directory], {
      stdout: "pipe",
      stderr: "inherit",
    });
    try {
      await eventually(() => fs.existsSync(recordOf(directory)), { what: "the record of the owner" });
      for (const insist of [{}, { takeOver: true, confirmHostDead: true }]) {
        expect(refusal(directory, insist).data).toMatchObject({ pid: owner.pid, endpoint_id: "endpoint_child" });
      }
    } finally {
      owner.kill("SIGKILL");
      await owner.exited;
    }
    const ownership = acquireOwnership(directory, ME);
    expect(JSON.parse(fs.readFileSync(recordOf(directory), "utf8"))).toMatchObject({ pid: process.pid });
    ownership.release();
  });

  test("a record of a live process of this host holds even without its lock", async () => {
    const directory = makeDirectory();
    const other = Bun.spawn(["sleep", "60"]);
    try {
      const identity = identify(other.pid)!;
      writeOwner(directory, identity);
      for (const insist of [{}, { takeOver: true, confirmHostDead: true }]) {
        expect(refusal(directory, insist).data).toMatchObject({
          pid: other.pid,
          hostname: identity.hostname,
          since: "2030-01-01T00:00:00.000Z",
        });
      }
      expect(JSON.parse(fs.readFileSync(recordOf(directory), "utf8"))).toMatchObject({ pid: other.pid });
    } finally {
      other.kill();
      await other.exited;
    }
    expect(() => acquireOwnership(directory, ME).release()).not.toThrow();
  });

  test("a recycled pid is not the owner", () => {
    const directory = makeDirectory();
    writeOwner(directory, { ...self(), start_time: self().start_time + 1 });
    expect(() => acquireOwnership(directory, ME).release()).not.toThrow();
  });

  test("an owner from before a reboot is gone", () => {
    const directory = makeDirectory();
    writeOwner(directory, { ...self(), boot_id: ANOTHER_HOST.boot_id });
    expect(() => acquireOwnership(directory, ME).release()).not.toThrow();
  });

  test("the same kernel under another host name is the same host", () => {
    const directory = makeDirectory();
    writeOwner(directory, { ...self(), hostname: "renamed", start_time: self().start_time + 1 });
    expect(() => acquireOwnership(directory, ME).release()).not.toThrow();
  });

  test("a record of another host is refused unless both flags say that it is dead", () => {
    const directory = makeDirectory();
    writeOwner(directory, ANOTHER_HOST);
    for (const flags of [{}, { takeOver: true }, { confirmHostDead: true }]) {
      const error = refusal(directory, flags);
      expect(error.data).toMatchObject({ hostname: "login-9", pid: 77 });
      expect(error.hint).toContain("--take-over --confirm-host-dead");
      expect(JSON.parse(fs.readFileSync(recordOf(directory), "utf8"))).toMatchObject({ hostname: "login-9" });
    }
    const ownership = acquireOwnership(directory, { ...ME, takeOver: true, confirmHostDead: true });
    expect(JSON.parse(fs.readFileSync(recordOf(directory), "utf8"))).toMatchObject({ hostname: self().hostname });
    ownership.release();
  });

  for (const [name, text] of [
    ["cut short", '{"pid": 1'],
    ["of another shape", '{"pid": 0, "extra": true}'],
    ["far too long", JSON.stringify({ pid: "9".repeat(100_000) })],
  ] as const) {
    test(`a record that is ${name} is not taken for nobody's`, () => {
      const directory = makeDirectory();
      fs.writeFileSync(recordOf(directory), text);
      expect(refusal(directory).message).toContain("owner.json");
      expect(fs.readFileSync(recordOf(directory), "utf8")).toBe(text);
      acquireOwnership(directory, { ...ME, takeOver: true, confirmHostDead: true }).release();
    });
  }

  test("a directory that cannot be made is queue_unavailable", () => {
    const file = path.join(makeDirectory(), "in-the-way");
    fs.writeFileSync(file, "");
    expect(() => acquireOwnership(path.join(file, "core"), ME)).toThrow(expect.objectContaining({ code: "queue_unavailable" }));
  });

  test("a refusal lets go of the lock", () => {
    const directory = makeDirectory();
    writeOwner(directory, ANOTHER_HOST);
    refusal(directory);
    fs.rmSync(recordOf(directory));
    expect(() => acquireOwnership(directory, ME).release()).not.toThrow();
  });
});
