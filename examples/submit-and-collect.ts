/**
 * Submits a job, follows it, and brings home what it leaves. With Bun, or a Node that strips types:
 *
 *     bun examples/submit-and-collect.ts CLUSTER DIRECTORY
 */
import fs from "node:fs";
import path from "node:path";
import { type ClusterClient, connect, isRelayError, type Job } from "clio-relay";

const SCRIPT = `
for i in 1 2 3; do echo "step $i"; done
mkdir "$1"
seq 1 1000 > "$1/numbers"
`;

async function submit(cluster: ClusterClient): Promise<Job> {
  const name = `example-${crypto.randomUUID()}`;
  const job = await cluster.submit({
    cluster: cluster.name,
    kind: "command",
    // The same key and the same body: the same job, however often it is sent.
    idempotency_key: name,
    spec: { argv: ["sh", "-ec", SCRIPT, "sh", name], workdir: "/tmp", outputs: [`${name}/*`] },
  });
  console.log(`submitted ${job.job_id}`);
  return job;
}

/** Every event once, however often the stream breaks off: it goes on behind the last one that was seen. */
async function follow(cluster: ClusterClient, jobId: string): Promise<void> {
  for (let cursor = 1; ; ) {
    try {
      for await (const event of cluster.eventStream(jobId, { cursor })) {
        console.log(`${event.seq} ${event.event_type}`);
        cursor = event.seq + 1;
      }
      if ((await cluster.status(jobId)).terminal) return;
    } catch (error) {
      // A reason says whether asking again helps; a message is for people.
      if (!isRelayError(error) || !error.rule.retryable) throw error;
      console.error(`${error.code}: ${error.message}; trying again`);
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

async function collect(cluster: ClusterClient, jobId: string, directory: string): Promise<void> {
  fs.mkdirSync(directory, { recursive: true });
  for (let cursor = 1; ; ) {
    const page = await cluster.artifacts(jobId, { cursor });
    if (page.artifacts.length === 0) return;
    for (const { artifact_id, kind, size_bytes } of page.artifacts) {
      const content = await cluster.artifactContent(artifact_id);
      const file = path.join(directory, `${kind}-${artifact_id}`);
      fs.writeFileSync(file, new Uint8Array(await content.arrayBuffer()));
      console.log(`${file}: ${size_bytes} bytes`);
    }
    cursor = page.next_cursor;
  }
}

const [name = "local", directory = "results"] = process.argv.slice(2);
const desktop = await connect();
const cluster = desktop.cluster(name);
const { job_id } = await submit(cluster);
await follow(cluster, job_id);
await collect(cluster, job_id, directory);
const ended = await cluster.wait(job_id, { timeout_seconds: 0 });
console.log(`${ended.state}: ${ended.outcome?.reason}`);
process.exitCode = ended.state === "succeeded" ? 0 : 1;
