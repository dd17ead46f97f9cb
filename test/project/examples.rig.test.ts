import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { nodeFetch } from "../../src/api/node-fetch.ts";
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
  });
});
