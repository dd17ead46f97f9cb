import { afterAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { RelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { type FrpInstallation, installFrp } from "../../../src/transport/frp/install.ts";
import { frpcFor, installedFrps, ownPlatform } from "../../../src/transport/frp/programs.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const directories = temporaryDirectories();
const never = new AbortController().signal;

/** A program that says what frpc says when it is asked for its version; ELF enough to be taken for one. */
const program = (words: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(`\x7fELF ${words}`);
const archiveOf = async (files: Record<string, Uint8Array>): Promise<Uint8Array> =>
  new Bun.Archive(files as never, { compress: "gzip" }).bytes();

const request = (directory: string, more: Partial<FrpInstallation> = {}): FrpInstallation => ({
  platform: "linux_mips64",
  from: null,
  sha256: null,
  directory,
  fetch: () => Promise.reject(new Error("nothing is fetched here")),
  signal: never,
  ...more,
});
const failure = (wanted: FrpInstallation): Promise<RelayError> =>
  installFrp(wanted).then(
    () => Promise.reject(new Error("it was installed")),
    (error) => error as RelayError,
  );
const fileWith = (bytes: Uint8Array): string => {
  const file = path.join(directories(), "given");
  fs.writeFileSync(file, bytes);
  return file;
};

test("a platform of which nothing is known is refused, with the way out", async () => {
  for (const more of [{}, { sha256: "0".repeat(64) }, { from: "/nowhere" }]) {
    const { code, hint, data } = await failure(request(directories(), more));
    expect([code, data["platform"]]).toEqual(["platform_unsupported", "linux_mips64"]);
    expect(hint).toContain("--sha256");
  }
});

test("an archive with the digest that was given; again is nothing", async () => {
  const directory = directories();
  const [frpc, frps] = [program("c"), program("s")];
  const archive = await archiveOf({ "frp_1/frpc": frpc, "frp_1/frps": frps, "frp_1/../../escape": program("x") });
  const from = fileWith(archive);
  const wanted = request(directory, { from, sha256: sha256Hex(archive) });
  const done = await installFrp(wanted);
  expect(done).toMatchObject({ state: "installed", frpc: sha256Hex(frpc), frps: sha256Hex(frps), version: null, source: from });
  expect(done.verified).toEqual({ what: "archive", sha256: sha256Hex(archive), by: "given" });
  expect(fs.readFileSync(done.paths.frpc)).toEqual(Buffer.from(frpc));
  expect(fs.statSync(done.paths.frpc).mode & 0o777).toBe(0o500);
  expect(fs.readdirSync(directory).toSorted()).toEqual([sha256Hex(frpc), sha256Hex(frps), "installed.json"].toSorted());
  fs.rmSync(from);
  expect((await installFrp(wanted)).state).toBe("kept");
  // Nothing is fetched for one that is there, whoever vouched for it.
  expect(await installFrp(request(directory))).toMatchObject({ state: "kept", paths: { frpc: done.paths.frpc, frps: done.paths.frps } });
  expect(frpcFor(directory, "linux_mips64").digest).toBe(sha256Hex(frpc));
  expect(() => frpcFor(directory, "linux_arm64")).toThrow("there is no frpc for linux_arm64 here");
});

test("a digest of the program counts too: of it alone, or of the one in an archive", async () => {
  const frpc = program("c");
  const archive = await archiveOf({ "a/frpc": frpc, "a/frps": program("s") });
  const bare = await installFrp(request(directories(), { from: fileWith(frpc), sha256: sha256Hex(frpc) }));
  expect(bare.verified).toEqual({ what: "binary", sha256: sha256Hex(frpc), by: "given" });
  const packed = await installFrp(request(directories(), { from: fileWith(archive), sha256: sha256Hex(frpc) }));
  // Of the other program in it nothing was said.
  expect([packed.frpc, packed.frps, packed.verified.what]).toEqual([sha256Hex(frpc), null, "binary"]);
});

test("of a release whose archive is not known, the programs in it have to be those that are", async () => {
  const [frpc, frps, other] = [program("c"), program("s"), program("x")];
  const pins = {
    linux_mips64: { archive: "a.tar.gz", archive_sha256: null, frpc: sha256Hex(frpc), frps: sha256Hex(frps) },
  };
  const from = async (files: Record<string, Uint8Array>) => request(directories(), { pins, from: fileWith(await archiveOf(files)) });
  const done = await installFrp(await from({ "a/frpc": frpc, "a/frps": frps }));
  expect(done).toMatchObject({ frpc: sha256Hex(frpc), frps: sha256Hex(frps), verified: { what: "binary", by: "pinned" } });
  // One that is not known is not kept, and a frpc that is not makes it another archive.
  expect((await installFrp(await from({ "a/frpc": frpc, "a/frps": other }))).frps).toBeNull();
  const refused = await failure(await from({ "a/frpc": other, "a/frps": frps }));
  expect([refused.code, refused.data["expected"], refused.data["frpc"]]).toEqual(["digest_mismatch", [sha256Hex(frpc)], sha256Hex(other)]);
});

test("another digest, and nothing is kept", async () => {
  const directory = directories();
  const archive = await archiveOf({ "a/frpc": program("c") });
  for (const bytes of [archive, program("c")]) {
    const { code, data, hint } = await failure(request(directory, { from: fileWith(bytes), sha256: "0".repeat(64) }));
    expect(hint).toContain("clio-relay install-frp --from FILE --sha256 HEX");
    expect([code, data["digest"], data["expected"]]).toEqual(["digest_mismatch", sha256Hex(bytes), ["0".repeat(64)]]);
  }
  const pinned = await failure(request(directory, { platform: "linux_amd64", from: fileWith(archive) }));
  expect([pinned.code, pinned.data["expected"]]).toEqual([
    "digest_mismatch",
    ["7be257b72dbbc60bcb3e0e25a5afd1dfac7b63f897084864d3c956dd3d5674e1"],
  ]);
  expect(installedFrps(directory)).toEqual([]);
  expect(fs.readdirSync(directory)).toEqual([]);
});

test("what is no program, no archive, or an archive without frpc", async () => {
  const empty = await archiveOf({ "a/other": program("c") });
  const cut = (await archiveOf({ "a/frpc": program("c") })).subarray(0, 30);
  const text = new TextEncoder().encode("#!/bin/sh\n");
  for (const bytes of [empty, cut, text]) {
    expect((await failure(request(directories(), { from: fileWith(bytes), sha256: sha256Hex(bytes) }))).code).toBe("artifact_unfit");
  }
});

test("one for this machine that does not start is not installed", async () => {
  const directory = directories();
  const broken = program("no code");
  const { code } = await failure(request(directory, { platform: ownPlatform(), from: fileWith(broken), sha256: sha256Hex(broken) }));
  expect([code, installedFrps(directory)]).toEqual(["artifact_unfit", []]);
});

const frpc = program("from afar");
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(incoming) {
    const { pathname } = new URL(incoming.url);
    if (pathname === "/frpc") return new Response(frpc);
    if (pathname !== "/endless") return new Response("no", { status: 404 });
    const piece = new Uint8Array(4 * 1024 * 1024);
    return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(piece) }));
  },
});
afterAll(() => server.stop(true));

test("from an address: what comes, what does not, and what never ends", async () => {
  const at = (name: string) => `http://127.0.0.1:${server.port}/${name}`;
  const wanted = (name: string) => request(directories(), { from: at(name), sha256: sha256Hex(frpc), fetch });
  expect(await installFrp(wanted("frpc"))).toMatchObject({ frpc: sha256Hex(frpc), source: at("frpc") });
  for (const name of ["missing", "endless"]) {
    expect(await failure(wanted(name))).toMatchObject({
      code: "download_failed",
      hint: expect.stringContaining("clio-relay install-frp --from FILE"),
    });
  }
});

test("a name and a password of an address are in no record and in no failure", async () => {
  const at = (name: string, port: number) => `http://me:pass-word@127.0.0.1:${port}/${name}?key=pass-word`;
  const wanted = (from: string) => request(directories(), { from, sha256: sha256Hex(frpc), fetch });
  const done = await installFrp(wanted(at("frpc", server.port!)));
  const failures = [
    await failure(wanted(at("missing", server.port!))),
    await failure(wanted(at("frpc", 1))),
    await failure({ ...wanted(at("frpc", server.port!)), sha256: "0".repeat(64) }),
    await failure({ ...wanted("http://me:pass-word@[/"), sha256: "0".repeat(64) }),
  ];
  expect([done.source, failures.map(({ code }) => code)]).toEqual([
    `http://127.0.0.1:${server.port}/frpc`,
    ["download_failed", "download_failed", "digest_mismatch", "download_failed"],
  ]);
  for (const failed of failures) expect(Bun.inspect([failed.message, failed.data, failed.hint, failed.cause])).not.toContain("pass-word");
});
