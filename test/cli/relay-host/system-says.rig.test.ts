import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { TOKEN } from "../../roles/relay-host/place.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { SourceRelay } from "../source-relay.ts";

const DIAL = path.resolve(import.meta.dir, "../../../src/transport/dial-tcp.ts");
/** Without the right to ports below 1024, whoever runs it. */
const RIGHTLESS = ["unshare", "-n", "setpriv", "--bounding-set=-net_bind_service", "--inh-caps=-net_bind_service"];

interface Problem {
  readonly reason: string;
  readonly detail: string;
  readonly hint?: string;
}
const problem = (stderr: string): Problem => JSON.parse(stderr.trim().split("\n").at(-1)!) as Problem;

describeWith(["netns"], "what the system says is said", () => {
  test("of an address to which there is no way, and of one that refuses", async () => {
    using files = temporaryDirectory();
    const script = path.join(files.path, "dial.ts");
    fs.writeFileSync(
      script,
      `import { dialTcp } from ${JSON.stringify(DIAL)};
for (const host of ["198.18.0.1", "203.0.113.1", "198.51.100.1", "127.0.0.1"]) {
  const signal = new AbortController().signal;
  await dialTcp({ host, port: 9, family: "any", bindAddress: null, timeoutMs: 5_000, signal }).catch((error) => console.log(error.message));
}
`,
    );
    const routes = "ip link set lo up; ip route add unreachable 198.18.0.0/15; ip route add prohibit 198.51.100.0/24";
    const child = Bun.spawn(["unshare", "-n", "sh", "-c", `${routes}; exec "$0" "$1"`, process.execPath, script], { stdout: "pipe" });
    const said = (await child.stdout.text()).trim().split("\n");
    expect(said).toEqual([
      "198.18.0.1, port 9, cannot be reached (198.18.0.1: EHOSTUNREACH)",
      "203.0.113.1, port 9, cannot be reached (203.0.113.1: ENETUNREACH)",
      "198.51.100.1, port 9, cannot be reached (198.51.100.1: EACCES)",
      "127.0.0.1, port 9, cannot be reached (127.0.0.1: ECONNREFUSED)",
    ]);
  });

  test("of a port that a relay-host may not use, and what to do", async () => {
    await using relay = new SourceRelay({ CLIO_RELAY_HOST_TOKEN: TOKEN }, RIGHTLESS);
    const { code, stderr } = await relay.run(["relay-host", "serve", "--listen-tcp", ":443", "--json"]);
    expect([code === 0, problem(stderr)]).toMatchObject([false, { reason: "configuration_error" }]);
    expect(problem(stderr).detail).toBe("port 443, cannot be listened on (this user may not, EACCES)");
    expect(problem(stderr).hint).toContain("setcap cap_net_bind_service=+ep");
  });

  test("of a token file that is another user's, to root", async () => {
    await using relay = new SourceRelay();
    const file = path.join(relay.directory, "token");
    fs.writeFileSync(file, TOKEN, { mode: 0o600 });
    fs.chownSync(file, 65_534, 65_534);
    const { stderr } = await relay.run(["relay-host", "serve", "--listen-tcp", "127.0.0.1:0", "--token-file", file, "--json"]);
    expect(problem(stderr)).toMatchObject({ reason: "configuration_error" });
    expect(problem(stderr).hint).toContain(`sudo install -m 0600 -o root ${file}`);
  });
});
