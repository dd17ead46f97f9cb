import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { TcpProxy } from "../rigs/proxy/tcp-proxy.ts";
import { describeWith } from "../runner/components.ts";
import { eventually } from "../runner/wait.ts";
import type { SourceRelay } from "./source-relay.ts";
import { FarSite, farLink } from "./ssh-desk.ts";

const TIMEOUT = 600_000;
/** What goes over a link besides content, and bytes that had come and were not written. */
const AROUND = 2 ** 20;

/**
 * An input of so many bytes on its way over a link that is cut just before the end of it, and back.
 *
 * @param BYTES a whole number of MiB
 * @param say told what was measured
 */
export function cutAtTheEnd(BYTES: number, say: (line: string) => void = () => undefined): void {
  describeWith(["sshd", "ssh"], "an input on its way over a link", () => {
    let site: FarSite;
    let proxy: TcpProxy;
    let relay: SourceRelay;
    let digest: string;
    /** What the proxy passes on before it holds the rest, and says that it does. */
    const PASSED = BYTES - 2 ** 20;
    /** What of that is there at least: a thousandth is of the session, and of the 8 MiB of pieces that may be under way none may be complete. */
    const NEAR = PASSED * 0.998 - 8 * 2 ** 20;

    beforeAll(async () => {
      site = await FarSite.start();
      site.worker.start();
      proxy = await TcpProxy.start({ host: site.sshd.host, port: site.sshd.port });
      const known = `[127.0.0.1]:${proxy.port} ${site.sshd.hostKey()}\n`;
      relay = await site.desk({ sshd: { host: "127.0.0.1", port: proxy.port, knownLine: () => known } });
      digest = await pseudoRandomFile(path.join(relay.directory, "deck.bin"), BYTES);
      await relay.ok("connect", "far");
    }, TIMEOUT);
    afterAll(async () => {
      await relay[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await site[Symbol.asyncDispose]();
    });

    /** What went over the link since it is there, this way and that. */
    const carried = async (): Promise<{ bytes_out: number; bytes_in: number }> => {
      const { bytes_out, bytes_in } = await farLink(relay);
      expect([bytes_out, bytes_in]).toEqual([expect.any(Number), expect.any(Number)]);
      return { bytes_out: bytes_out!, bytes_in: bytes_in! };
    };
    const told = (what: string, kept: number, again: number, began: number): void =>
      say(
        `${what}: ${BYTES / 2 ** 20} MiB, cut at ${((kept / BYTES) * 100).toFixed(2)} %, ${(again / 2 ** 20).toFixed(1)} MiB over the next link, ${((performance.now() - began) / 1_000).toFixed(1)} s in all`,
      );

    const inputs = () => path.join(site.user.home, ".local/share/clio-relay/spool/far/inputs");
    const partBytes = (): number => {
      const part = fs.existsSync(inputs()) ? fs.readdirSync(inputs()).find((name) => name.endsWith(".provisional")) : undefined;
      return part === undefined ? 0 : fs.statSync(path.join(inputs(), part)).size;
    };

    test(
      "a link that is cut just before the end goes on from there when it is back; the digest is right, and nothing was sent twice",
      async () => {
        const passed = proxy.passOnly("toTarget", PASSED);
        const began = performance.now();
        const submit = relay.start([
          "job",
          "submit",
          "--wait",
          "--max-input-bytes",
          "4GiB",
          "--input",
          "deck=deck.bin",
          "--",
          "sh",
          "-c",
          'sha256sum < "$CLIO_RELAY_INPUT_DECK" | cut -c1-64',
        ]);
        await passed;
        await eventually(() => partBytes() >= NEAR, { what: "all but the end of the input" });
        proxy.cut();
        proxy.passAll();
        await eventually(async () => (await farLink(relay)).state === "authorization_required", { what: "the end of the link" });
        const there = partBytes();
        expect(there).toBeGreaterThanOrEqual(NEAR);
        expect(there).toBeLessThan(BYTES);
        expect(submit.exitCode).toBeNull();
        await relay.ok("connect", "far");
        const [id, said, code] = [(await submit.stdout.text()).trim(), await submit.stderr.text(), await submit.exited];
        expect([code, said]).toEqual([0, expect.stringContaining("clio-relay connect far")]);
        expect((await relay.ok("job", "read-log", id)).trim()).toBe(digest);
        const { inputs: listed } = await relay.json<{ inputs: { sha256: string }[] }>("job", "status", id);
        expect(listed[0]?.sha256).toBe(digest);
        const { bytes_out } = await carried();
        expect(bytes_out).toBeLessThan(BYTES - there + AROUND);
        told("sent", there, bytes_out, began);
      },
      TIMEOUT,
    );

    test(
      "the same content is not sent again, also under another name",
      async () => {
        fs.linkSync(path.join(relay.directory, "deck.bin"), path.join(relay.directory, "other.dat"));
        const before = (await carried()).bytes_out;
        const id = await relay.submit(
          "--wait",
          "--max-input-bytes",
          "4GiB",
          "--input",
          "x=other.dat",
          "--",
          "sh",
          "-c",
          // As another user than root, who could do anything.
          'basename "$CLIO_RELAY_INPUT_X"; (echo x > "$CLIO_RELAY_INPUT_X") 2>/dev/null && echo written; rm -f "$CLIO_RELAY_INPUT_X" 2>/dev/null && echo gone; true',
        );
        expect((await carried()).bytes_out - before).toBeLessThan(200_000);
        expect((await relay.ok("job", "read-log", id)).trim()).toBe("other.dat");
      },
      TIMEOUT,
    );

    test(
      "an artifact of that size comes back over a link that is cut just before the end, and is the same",
      async () => {
        const { jobs } = await relay.json<{ jobs: { job_id: string }[] }>("job", "list");
        const { inputs: listed } = await relay.json<{ inputs: { artifact_id: string }[] }>("job", "status", jobs.at(-1)!.job_id);
        const target = path.join(relay.directory, "back.bin");
        const arrived = () =>
          Math.max(
            0,
            ...fs
              .readdirSync(relay.directory)
              .map((name) => (name.includes("back.bin") ? fs.statSync(path.join(relay.directory, name)).size : 0)),
          );
        const began = performance.now();
        const passed = proxy.passOnly("fromTarget", PASSED);
        const reading = relay.start(["job", "read-artifact", listed[0]!.artifact_id, "-o", target]);
        await passed;
        await eventually(() => arrived() >= NEAR, { what: "all but the end of the artifact" });
        proxy.cut();
        proxy.passAll();
        await eventually(async () => (await farLink(relay)).state === "authorization_required", { what: "the end of the link" });
        const there = arrived();
        expect(there).toBeGreaterThanOrEqual(NEAR);
        await relay.ok("connect", "far");
        expect(await reading.exited).toBe(0);
        const { bytes_in } = await carried();
        expect(bytes_in).toBeLessThan(BYTES - there + AROUND);
        told("read", there, bytes_in, began);
        const hash = new Bun.CryptoHasher("sha256");
        for await (const bytes of fs.createReadStream(target)) hash.update(bytes as Uint8Array);
        expect(hash.digest("hex")).toBe(digest);
      },
      TIMEOUT,
    );
  });
}

/** Bytes that do not repeat; returns their SHA-256. */
async function pseudoRandomFile(file: string, bytes: number): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  const fd = fs.openSync(file, "w");
  const block = Buffer.allocUnsafe(2 ** 20);
  for (let at = 0; at < bytes; at += block.length) {
    crypto.getRandomValues(block.subarray(0, 65_536));
    for (let from = 65_536; from < block.length; from *= 2) block.copyWithin(from, 0, Math.min(from, block.length - from));
    const piece = block.subarray(0, Math.min(block.length, bytes - at));
    hash.update(piece);
    fs.writeSync(fd, piece);
  }
  fs.closeSync(fd);
  return hash.digest("hex");
}
