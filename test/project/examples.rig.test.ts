import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { nodeFetch } from "../../src/api/client/node-fetch.ts";
import { connect } from "../../src/package.ts";
import { listen } from "../api/web-socket-client.ts";
import { describeWith } from "../runner/components.ts";
import { EXECUTABLE, type Relay, startRelay } from "../runner/relay.ts";

const ROOT = path.resolve(import.meta.dir, "../..");
const EXAMPLES = path.join(ROOT, "examples");
const TYPESCRIPT = "submit-and-collect.ts";

let relay: Relay;
/** Where somebody has installed the package. */
let place: string;
beforeAll(async () => {
  relay = await startRelay({ env: { PATH: `${path.dirname(EXECUTABLE)}:${process.env["PATH"] ?? ""}` } });
  place = path.join(relay.directory, "program");
  fs.mkdirSync(path.join(place, "node_modules"), { recursive: true });
  fs.symlinkSync(path.join(ROOT, "dist"), path.join(place, "node_modules/clio-relay"));
  fs.copyFileSync(path.join(EXAMPLES, TYPESCRIPT), path.join(place, TYPESCRIPT));
});
afterAll(() => relay[Symbol.asyncDispose]());

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(command: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const child = Bun.spawn([...command], {
    cwd: place,
    env: { ...relay.environment, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

const NUMBERS = Array.from({ length: 1_000 }, (_, i) => `${i + 1}\n`).join("");

/** That a program did what the examples do. */
function collected({ code, stdout, stderr }: Ran, directory: string): void {
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^submitted job_[0-9a-f]{32}\n1 job\.queued\n/);
  expect(stdout).toContain(" job.succeeded\n");
  expect(stdout).toEndWith("succeeded: completed\n");
  const files = fs.readdirSync(path.join(place, directory));
  const contentOf = (kind: string): string =>
    fs.readFileSync(path.join(place, directory, files.find((file) => file.startsWith(`${kind}-`))!), "utf8");
  expect([contentOf("stdout"), contentOf("execution_output")]).toEqual(["step 1\nstep 2\nstep 3\n", NUMBERS]);
}

/** One that breaks off between two chunks, in one, and is answered for by something on the way; and behind which events it was asked to go on. */
async function breakingApi() {
  const behind: string[] = [];
  const chunk = (id: number, event: string): string => {
    const text = `id: ${id}\nevent: ${event}\ndata: {"seq":${id},"event_type":"${event}"}\n\n`;
    return `${text.length.toString(16)}\r\n${text}\r\n`;
  };
  const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  const streams = [
    head + chunk(1, "step"),
    head + chunk(2, "step") + chunk(3, "step").slice(0, 20),
    "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>",
    `${head}${chunk(3, "step")}${chunk(3, "terminal")}0\r\n\r\n`,
  ];
  const documents: Readonly<Record<string, object>> = {
    "POST /clusters/c/jobs": { job_id: "job_1" },
    "GET /clusters/c/jobs/job_1": { state: "succeeded", outcome: { reason: "completed" } },
    "GET /clusters/c/jobs/job_1/artifacts?cursor=1": { artifacts: [], next_cursor: 1 },
  };
  const answerTo = (request: string): string => {
    const line = request.slice(0, request.indexOf(" HTTP/1.1"));
    if (line.endsWith("/events/sse")) {
      behind.push(/^last-event-id: (\d+)/im.exec(request)![1]!);
      return streams[behind.length - 1]!;
    }
    const body = JSON.stringify(documents[line]);
    return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const server = net.createServer((connection) => connection.once("data", (request) => connection.end(answerTo(String(request)))));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    behind,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

describe("the example in TypeScript", () => {
  test("fits the types of the package", async () => {
    const options = {
      strict: true,
      noEmit: true,
      module: "Preserve",
      moduleResolution: "bundler",
      target: "ESNext",
      exactOptionalPropertyTypes: true,
    };
    const compilerOptions = { ...options, skipLibCheck: false, lib: ["ESNext"], types: [path.join(ROOT, "node_modules/@types/node")] };
    fs.writeFileSync(path.join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [TYPESCRIPT] }));
    const compiler = path.join(ROOT, "node_modules/typescript/bin/tsc");
    const { stdout } = await run([process.execPath, compiler, "-p", place]);
    expect(stdout.split("\n").filter((line) => /clio-relay|submit-and-collect/.test(line))).toEqual([]);
  });

  test("and what it is installed with is what its types need", async () => {
    const packed = path.join(ROOT, "dist/client");
    const { dependencies } = JSON.parse(fs.readFileSync(path.join(ROOT, "dist/package.json"), "utf8")) as { dependencies: object };
    const imports = [...new Bun.Glob("**/*.{js,d.ts}").scanSync(packed)].flatMap((file) =>
      [...fs.readFileSync(path.join(packed, file), "utf8").matchAll(/\b(?:from |import\()"([^"]+)"/g)].map(([, name]) => name!),
    );
    expect([...new Set(imports.filter((name) => !/^(?:\.|node:)/.test(name)))]).toEqual(Object.keys(dependencies));
    fs.writeFileSync(
      path.join(place, "page.ts"),
      'import { connect } from "clio-relay";\nexport const jobs = (await connect()).cluster("local").jobs();\n',
    );
    const options = { strict: true, noEmit: true, module: "ESNext", moduleResolution: "bundler", target: "ES2024", types: [] };
    fs.writeFileSync(path.join(place, "page.json"), JSON.stringify({ compilerOptions: options, files: ["page.ts"] }));
    const compiler = path.join(ROOT, "node_modules/typescript/bin/tsc");
    expect((await run([process.execPath, compiler, "-p", path.join(place, "page.json")])).stdout).toBe("");
  });

  test("finds the desktop, and runs in Bun", async () => {
    collected(await run([process.execPath, TYPESCRIPT, "local", "with-bun"]), "with-bun");
  });
});

describeWith("node", "the example in TypeScript, without its types", () => {
  test("runs in Node", async () => {
    const script = new Bun.Transpiler({ loader: "ts" }).transformSync(fs.readFileSync(path.join(EXAMPLES, TYPESCRIPT), "utf8"));
    fs.writeFileSync(path.join(place, "example.mjs"), script);
    collected(await run(["node", "example.mjs", "local", "with-node"]), "with-node");
  });
});

describe("the API on TCP", () => {
  let url: string;
  let tokenFile: string;
  beforeAll(async () => {
    ({ url, token_file: tokenFile } = await relay.json<{ url: string; token_file: string }>("api", "start", "--port", "0"));
  });

  test("is one that the package goes to by its URL and token, in either runtime's way", async () => {
    const token = fs.readFileSync(tokenFile, "utf8").trim();
    const desktop = await connect({ url, token });
    expect((await desktop.cluster("local").jobs({ limit: 1 })).jobs).toHaveLength(1);
    const wrong = await connect({ url, token: `${token}x` });
    expect(await wrong.clusters().catch((error: unknown) => error)).toMatchObject({ code: "authentication_required" });
    expect(await connect({ url }).catch((error: unknown) => error)).toMatchObject({ code: "usage" });
    const answer = await nodeFetch(new URL(`${url}/clusters`), { headers: { authorization: `Bearer ${token}` } });
    expect([answer.status, await answer.json()]).toMatchObject([200, { clusters: [{ name: "local" }] }]);
  });

  test("lets a page's WebSocket in by its parameter, and nothing else", async () => {
    const token = fs.readFileSync(tokenFile, "utf8").trim();
    const { jobs } = await relay.json<{ jobs: { job_id: string }[] }>("job", "list");
    const route = `/clusters/local/jobs/${jobs[0]!.job_id}/events/ws`;
    const socket = url.replace("http:", "ws:");
    expect(await listen(`${socket}${route}?token=${token}`)).toMatchObject({ code: 1000, reason: "terminal" });
    expect(await listen(`${socket}${route}?token=${token}x`)).toEqual({ messages: [], code: 1008, reason: "authentication_required" });
    expect((await fetch(`${url}/clusters?token=${token}`)).status).toBe(401);
  });

  describeWith("python3", "the example in Python", () => {
    test("needs nothing else", async () => {
      const env = { CLIO_RELAY_API_URL: url, CLIO_RELAY_API_TOKEN_FILE: tokenFile, PYTHONDONTWRITEBYTECODE: "1" };
      const script = path.join(EXAMPLES, "submit_and_collect.py");
      collected(await run(["python3", script, "local", "with-python"], env), "with-python");
      const refused = path.join(place, "other-token");
      fs.writeFileSync(refused, "wrong");
      const failed = await run(["python3", script], { ...env, CLIO_RELAY_API_TOKEN_FILE: refused });
      expect([failed.code, failed.stderr.trim().split("\n").at(-1)]).toEqual([1, expect.stringContaining("authentication_required")]);
    });

    test("goes on behind the last event, wherever the stream breaks off", async () => {
      await using fake = await breakingApi();
      const env = { CLIO_RELAY_API_URL: fake.url, CLIO_RELAY_API_TOKEN_FILE: tokenFile, PYTHONDONTWRITEBYTECODE: "1" };
      const { code, stdout } = await run(["python3", path.join(EXAMPLES, "submit_and_collect.py"), "c", "broken"], env);
      expect([code, stdout.split("\n")]).toEqual([0, ["submitted job_1", "1 step", "2 step", "3 step", "succeeded: completed", ""]]);
      expect(fake.behind).toEqual(["0", "1", "2", "2"]);
    });

    test("says in one line what is not there", async () => {
      const env = { CLIO_RELAY_API_URL: "http://127.0.0.1:1", CLIO_RELAY_API_TOKEN_FILE: tokenFile, PYTHONDONTWRITEBYTECODE: "1" };
      for (const missing of [env, { ...env, CLIO_RELAY_API_TOKEN_FILE: path.join(place, "no-token") }]) {
        const { code, stderr } = await run(["python3", path.join(EXAMPLES, "submit_and_collect.py")], missing);
        expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]+: clio-relay api start\n$/)]);
      }
    });
  });
});
