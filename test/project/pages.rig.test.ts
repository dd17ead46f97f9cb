import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { sha256Hex } from "../../src/lib/digest.ts";
import { describeWith } from "../runner/components.ts";
import { EXECUTABLE, type Relay, startRelay } from "../runner/relay.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));

/** The shell blocks of a page, in their order. */
const blocksOf = (page: string): string[] =>
  [...fs.readFileSync(path.join(ROOT, "docs", page), "utf8").matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block]) => block!);

/** A text with what a reader would put in place of what the page cannot know. Everything of that has to be in it. */
function filledIn(text: string, words: Readonly<Record<string, string>>): string {
  return Object.entries(words).reduce((filled, [word, instead]) => {
    expect(filled).toContain(word);
    return filled.replaceAll(word, instead);
  }, text);
}

describeWith(["linux", "curl", "jq"], "what a page shows in a shell works as it is written", () => {
  let relay: Relay;
  beforeAll(async () => {
    relay = await startRelay();
  });
  afterAll(() => relay[Symbol.asyncDispose]());

  async function shell(script: string): Promise<string> {
    const env = { ...relay.environment, PATH: `${path.dirname(EXECUTABLE)}:${process.env.PATH}` };
    const child = Bun.spawn(["sh", "-eu", "-c", script], { cwd: relay.directory, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    expect(code, `${script}\n${stderr}`).toBe(0);
    return stdout;
  }

  test("Use the HTTP API", async () => {
    const { url, token_file } = await relay.json<{ url: string; token_file: string }>("api", "start", "--port", "0");
    const [begin, job] = blocksOf("use-the-api.md");
    const begun = await shell(
      filledIn(begin!, {
        "clio-relay api start ": `clio-relay api start --port ${new URL(url).port} `,
        "http://127.0.0.1:8765/": `${url}/`,
        "~/.config/clio-relay/api-token": token_file,
      }),
    );
    // Over the socket, and over TCP.
    expect(begun.match(/\{"jobs":\[/g)).toHaveLength(2);
    expect(fs.statSync(path.join(relay.directory, "field")).mode & 0o777).toBe(0o600);
    const said = await shell(
      `socket=$(clio-relay desktop status --json | jq -r .socket)\n${filledIn(job!, { '"/tmp"': JSON.stringify(relay.directory) })}`,
    );
    expect(said).toContain("event: terminal");
    expect(said).toContain('"outcome":"terminal"');
    expect(said).toContain("hello");
    expect(said).toEndWith(fs.readFileSync(path.join(relay.directory, "result.txt"), "utf8"));
  });

  test("Lineage and provenance", async () => {
    const [users, transform] = blocksOf("lineage.md");
    fs.writeFileSync(path.join(relay.directory, "mesh"), "a mesh");
    const producer = await relay.json<{ job_id: string }>("job", "submit", "--wait", "--output", "mesh", "--", "true");
    const { artifacts } = await relay.json<{ artifacts: { name: string; artifact_id: string; sha256: string }[] }>(
      "job",
      "list-artifacts",
      producer.job_id,
    );
    const mesh = artifacts.find(({ name }) => name === "mesh")!;
    const [submit, ...rest] = filledIn(users!, { "--cluster c ": "", "artifact_…=<sha256>": `${mesh.artifact_id}=${mesh.sha256}` })
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    const consumer = (await shell(filledIn(submit!, { "./post-process": "cat mesh", "job submit": "job submit --wait" }))).trim();
    const said = await shell(filledIn(rest.join("\n"), { JOB: consumer, ARTIFACT: mesh.artifact_id }));
    expect(said).toContain(`${mesh.artifact_id}\t${producer.job_id}`);
    expect(said).toContain(`\n${consumer}\t`);
    expect(said).toContain('"prov:Plan"');
    expect(fs.statSync(path.join(relay.directory, "crate.zip")).size).toBeGreaterThan(1_000);
    const recorded = await shell(
      filledIn(transform!, {
        "clusters/c/": "clusters/local/",
        "/JOB/": `/${consumer}/`,
        "artifact_…": mesh.artifact_id,
        '"uv.lock", "sha256": "…"': `"uv.lock", "sha256": "${sha256Hex("uv.lock")}"`,
        '"sha256": "…"': `"sha256": "${mesh.sha256}"`,
      }),
    );
    expect(JSON.parse(recorded)).toMatchObject({ job_id: consumer, activity_id: "run-17", used_evidence: [{ sha256: mesh.sha256 }] });
  });

  test("Inputs, by hand", async () => {
    const page = filledIn(blocksOf("staging.md")[1]!, { "clusters/c": "clusters/local", '"cluster": "c"': '"cluster": "local"' });
    const [begin, small, large] = page.split(/\n\n(?=# )/);
    fs.writeFileSync(path.join(relay.directory, "in.lj"), "units lj\n");
    const said = (await shell(`${begin}\n${small}`)).trim().split("\n");
    const job = JSON.parse(said.at(-1)!) as { job_id: string };
    await relay.json("job", "wait", job.job_id);
    expect((await relay.run(["job", "read-log", job.job_id])).stdout).toBe("units lj\n");
    const bytes = Buffer.alloc(2_500_000, "0123456789abc");
    fs.writeFileSync(path.join(relay.directory, "in.lj"), bytes);
    const pieces = (await shell(`${begin}\n${large}`)).trim().replaceAll("}{", "}\n{").split("\n");
    expect(pieces.map((line) => JSON.parse(line) as object)).toMatchObject([
      { state: "partial", offset: 0 },
      { state: "partial", offset: 1_048_576 },
      { state: "partial", offset: 2_097_152 },
      { state: "complete", sha256: sha256Hex(bytes) },
    ]);
  });
});
