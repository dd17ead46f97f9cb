import fs from "node:fs";
import path from "node:path";
import { type SourceRelay, withWorker } from "../source-relay.ts";

/** A job that left a file, and one that used it and left two. */
export interface TwoJobs extends AsyncDisposable {
  readonly relay: SourceRelay;
  readonly producer: string;
  readonly consumer: string;
  readonly mesh: Listed["artifacts"][number];
}

interface Listed {
  readonly artifacts: readonly { readonly artifact_id: string; readonly kind: string; readonly name: string; readonly sha256: string }[];
}

export async function twoJobs(): Promise<TwoJobs> {
  const relay = await withWorker();
  const producer = await relay.submit("--wait", "--output", "mesh.dat", "--", "sh", "-c", "printf 'a mesh' > mesh.dat");
  const { artifacts } = await relay.json<Listed>("job", "list-artifacts", producer);
  const mesh = artifacts.find(({ kind }) => kind === "execution_output")!;
  fs.writeFileSync(
    path.join(relay.directory, "solve.sh"),
    '#!/bin/sh\nprintf solved > "result one.txt"\nhead -c 300000 /dev/zero > field.bin\n',
  );
  const pin = JSON.stringify({
    artifact_id: mesh.artifact_id,
    sha256: mesh.sha256,
    provenance: { schema_version: "clio-relay.artifact-use.v1", evidence: "assertion", arg: "mesh" },
  });
  const consumer = await relay.submit("--wait", "--output", "*.txt", "--output", "*.bin", "--used-artifact", pin, "--script", "solve.sh");
  return { relay, producer, consumer, mesh, [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose]() };
}
