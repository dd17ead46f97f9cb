import { expect, test } from "bun:test";
import { HttpPeer } from "../../src/api/client/http-peer.ts";
import { Metrics } from "../../src/roles/relay-host/metrics.ts";
import { readExposition } from "../lib/text/exposition-reader.ts";
import { familiesOf } from "../rigs/prometheus-client/parser.ts";
import { startDaemon } from "../roles/desktop/daemon.ts";
import { WorkerHarness } from "../roles/worker/harness.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

/** What each role shows. */
async function documents(): Promise<Readonly<Record<string, string>>> {
  await using worker = await new WorkerHarness().start();
  const { job_id } = await worker.shell("echo hello");
  await worker.ended(job_id);
  const ofWorker = await (await new HttpPeer({ kind: "unix", path: `${worker.directory}/run/worker.sock` }).send("/metrics")).text();
  using directory = temporaryDirectory();
  const daemon = await startDaemon(directory.path, { clusters: ["near", "far"] });
  await daemon.client.startListener({ port: 0 });
  const ofDesktop = await (await daemon.fetch("/metrics")).text();
  await daemon.stop();
  const host = new Metrics();
  host.add("refused_total", "token");
  const gauges = { connections: 1, strangers: 0, workers: 0, waiting: 0, joins: 0, held_bytes: 0, draining: 0 };
  return { worker: ofWorker, desktop: ofDesktop, host: host.text(gauges) };
}

test("each role's document is one, and its names are the documented ones", async () => {
  const page = await Bun.file(new URL("../../docs/metrics.md", import.meta.url)).text();
  const all = await documents();
  for (const role of ["worker", "desktop"]) {
    const families = new Set([...all[role]!.matchAll(/^# TYPE (\S+) /gm)].map((match) => match[1]!));
    expect(families.size).toBeGreaterThan(10);
    for (const family of families) {
      // A row may name several of a kind by their ends.
      const end = family.replace(/^clio_relay_(?:worker|link)(?=_)/, "");
      expect([family, page.includes(`\`${family}\``) || page.includes(`\`${end}\``)]).toEqual([family, true]);
    }
    expect(readExposition(all[role]!).length).toBeGreaterThan(20);
  }
  expect(readExposition(all["host"]!).length).toBeGreaterThan(5);
});

describeWith("prometheus-client", "Prometheus' library", () => {
  test("reads what was meant", async () => {
    for (const [role, text] of Object.entries(await documents())) {
      const samples = (await familiesOf(text)).flatMap(([type, own]) => {
        expect(["counter", "gauge", "histogram"]).toContain(type);
        return own;
      });
      const ours = readExposition(text).map(({ name, labels, value }): [string, Record<string, string>, number] => [name, labels, value]);
      expect([role, samples]).toEqual([role, ours]);
    }
  });
});

describeWith("promtool", "Prometheus' own tool", () => {
  test("finds nothing to say", async () => {
    for (const [role, text] of Object.entries(await documents())) {
      const child = Bun.spawn(["promtool", "check", "metrics"], { stdin: new TextEncoder().encode(text), stdout: "pipe", stderr: "pipe" });
      const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
      expect([role, code, out + err]).toEqual([role, 0, ""]);
    }
  });
});
