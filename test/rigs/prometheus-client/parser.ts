import path from "node:path";
import { pythonPrograms } from "../python-programs.ts";

/** Prometheus' client library for Python, which reads the text format. */
export const prometheusClient = pythonPrograms("prometheus-client", path.join(import.meta.dir, "requirements.txt"));

const READ = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families
print(json.dumps([[f.type, [[s.name, s.labels, s.value] for s in f.samples]] for f in text_string_to_metric_families(sys.stdin.read())]))
`;

/** Families as the library reads them: type, and samples with name, labels and value. */
export async function familiesOf(text: string): Promise<[type: string, samples: [string, Record<string, string>, number][]][]> {
  const child = Bun.spawn([prometheusClient.python(), "-c", READ], {
    stdin: new TextEncoder().encode(text),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(err);
  return JSON.parse(out);
}
