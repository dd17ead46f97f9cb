import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import { reportFailure } from "../../src/cli/failure.ts";
import { capturedIo } from "./captured-io.ts";
import { initialized, type SourceRelay } from "./source-relay.ts";

let relay: SourceRelay;
beforeAll(async () => {
  relay = await initialized();
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

describe("what is said to be done next leads on", () => {
  test.each([
    ["a new cluster without a name", ["cluster", "add"], "clio-relay cluster add --name NAME --ssh-host HOST makes one; "],
    ["a kind of event", ["emit", "task-event", "--event-type", "Found it", "--label", "l", "--summary", "s"], "such as input.checked\n"],
    [
      "a file of a job, without the job",
      ["job", "read-artifact", "result.txt", "--cluster", "local"],
      "clio-relay job read-artifact last result.txt ",
    ],
    ["a shell", ["completion"], "clio-relay completion --help "],
    ["a tool", ["mcp-call", "--cluster", "local", "--server", "s"], "--operation tools/list "],
    ["a prompt", ["agent", "run", "--cluster", "local"], "--prompt-file FILE "],
    ["the login node", ["cluster", "add", "far", "--mode", "ssh"], "--ssh-host HOST "],
    ["the relay-host", ["cluster", "add", "far", "--mode", "relay"], "--relay-host wss://HOST "],
    ["the frps", ["cluster", "add", "far", "--mode", "frp-stcp"], "--frp-server-addr HOST "],
    ["the frps of a port", ["cluster", "add", "far", "--frp-server-port", "7000"], "--frp-server-addr HOST "],
    ["a server that is to be forgotten", ["remote-mcp", "unregister", "--cluster", "local", "--name", "x"], "clio-relay remote-mcp list\n"],
    [
      "one that is to be asked",
      ["remote-mcp", "refresh", "--cluster", "local", "--name", "x"],
      "clio-relay remote-mcp register --cluster local ",
    ],
  ])("%s", async (_what, args, hint) => {
    const { code, stderr } = await relay.run(args);
    expect(code).toBeGreaterThan(0);
    expect(stderr).toContain(`\nhint: ${hint}`);
  });

  test("a link to this machine's worker, which is not running", async () => {
    const tried = await relay.run(["relay-host", "test-http-transport", "--cluster", "local"]);
    expect([tried.code, tried.stdout]).toEqual([5, expect.stringMatching(/^fix +clio-relay worker start --cluster local$/m)]);
  });

  test("a cluster that there is none of, whichever way to it is tried", async () => {
    for (const way of ["http-transport", "ssh-transport", "frpc-connection", "direct-transport"]) {
      const { code, stdout } = await relay.run(["relay-host", `test-${way}`, "--cluster", "nowhere", "--json"]);
      const failure = { layer: "configuration", reason: "cluster_not_found", fix: "clusters: local" };
      expect([way, code, JSON.parse(stdout)]).toMatchObject([way, 3, { ok: false, failure }]);
    }
  });

  test("nobody is asked about what is refused in any case", async () => {
    const refused = await relay.run(["cluster", "uninstall", "local"]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("local is on this machine")]);
    const nowhere = [
      ["queue", "repair"],
      ["worker", "keys", "revoke", "SHA256:none"],
      ["worker", "keys", "rotate", "--now"],
    ];
    for (const args of nowhere) {
      const { code, stderr } = await relay.run([...args, "--cluster", "nowhere"]);
      expect([args, code, stderr]).toEqual([args, 3, expect.stringContaining('there is no cluster "nowhere"')]);
    }
  });

  test("a cluster that there is none of has no keys, and gets none", async () => {
    for (const verb of ["list", "rotate"]) {
      const { code, stderr } = await relay.run(["worker", "keys", verb, "--cluster", "nowhere"]);
      expect([verb, code, stderr]).toEqual([verb, 3, expect.stringContaining("\nhint: clusters: local\n")]);
    }
    expect(fs.readdirSync(relay.directory, { recursive: true }).filter((name) => String(name).includes("nowhere"))).toEqual([]);
  });
});

describe("a system's refusal that nobody has put into words", () => {
  const reported = async (work: () => void): Promise<[code: number, said: string]> => {
    const io = capturedIo();
    try {
      work();
    } catch (error) {
      return [await reportFailure(io, error, false), io.stderr.text];
    }
    throw new Error("nothing was refused");
  };

  test("is said of the path, in words", async () => {
    const long = `${relay.directory}/${"x".repeat(300)}`;
    expect(await reported(() => fs.mkdirSync(long))).toEqual([1, `error: ${long}: no file can have that path [local_file_unusable]\n`]);
  });

  test("is no slip of the command line where it is that something is not there", async () => {
    const [code, said] = await reported(() => fs.readFileSync(`${relay.directory}/none`));
    expect([code, said]).toEqual([1, expect.stringContaining("ENOENT")]);
    expect(said).toEndWith("[local_file_unusable]\n");
  });
});
