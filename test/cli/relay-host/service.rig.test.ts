import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { freePort } from "../../rigs/free-port.ts";
import { describeWith } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { authority } from "../../transport/outbound/certificates.ts";
import { SystemdRig } from "../../transport/service/rig.ts";
import { printedDocuments } from "../printed.ts";

// @takes systemd Two managers that boot at once are in each other's control groups.

const UNIT = "clio-relay-relay-host.service";

describeWith(["nspawn", "openssl"], "the relay-host as a service, by a real systemd", () => {
  const rig = new SystemdRig();
  const PROGRAM = "/usr/local/bin/clio-relay";
  let ports: { tls: number; ws: number };
  let ca: string;

  beforeAll(async () => {
    rig.start();
    fs.copyFileSync(EXECUTABLE, rig.file(PROGRAM));
    fs.chmodSync(rig.file(PROGRAM), 0o755);
    using files = temporaryDirectory();
    const issuer = authority(files.path);
    const { cert, key } = issuer.issue("localhost", "DNS:localhost,IP:127.0.0.1");
    ca = fs.readFileSync(issuer.file, "utf8");
    fs.mkdirSync(rig.file("etc/relay-tls"), { mode: 0o700 });
    fs.copyFileSync(cert, rig.file("etc/relay-tls/cert.pem"));
    fs.copyFileSync(key, rig.file("etc/relay-tls/key.pem"));
    fs.chmodSync(rig.file("etc/relay-tls/key.pem"), 0o600);
    ports = { tls: await freePort(), ws: await freePort() };
  });
  afterAll(() => rig.stop());

  const install = (...more: string[]): string[] => [
    PROGRAM,
    "relay-host",
    "service",
    "install",
    "--listen",
    `127.0.0.1:${ports.tls}`,
    "--tls-cert",
    "/etc/relay-tls/cert.pem",
    "--tls-key",
    "/etc/relay-tls/key.pem",
    "--listen-ws",
    `127.0.0.1:${ports.ws}`,
    ...more,
  ];
  const health = async (): Promise<boolean> =>
    (await (await fetch(`https://localhost:${ports.tls}/healthz`, { tls: { ca } })).text()) === "ok\n" &&
    (await (await fetch(`http://127.0.0.1:${ports.ws}/healthz`)).text()) === "ok\n";
  const property = (name: string): string => rig.run("systemctl", "show", "--property", name, "--value", UNIT).trim();

  test("install writes a unit that systemd takes, runs it as a user of its own, and is the same twice; uninstall leaves the token", async () => {
    const shown = rig.run(...install("--dry-run"));
    expect(fs.existsSync(rig.file(`etc/systemd/system/${UNIT}`))).toBe(false);
    const json = (args: readonly string[]): unknown => printedDocuments(args.slice(1), rig.run(...args))[0];
    const first = json(install("--json"));
    expect(first).toMatchObject({ unit: UNIT, token: "made", changed: true, active: true });
    expect(fs.readFileSync(rig.file(`etc/systemd/system/${UNIT}`), "utf8")).toBe(shown);
    expect(rig.run("systemd-analyze", "verify", `/etc/systemd/system/${UNIT}`)).toBe("");
    await eventually(health);

    const token = fs.readFileSync(rig.file("etc/clio-relay/relay-host.token"), "utf8").trim();
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    expect(fs.statSync(rig.file("etc/clio-relay/relay-host.token")).mode & 0o777).toBe(0o600);
    const pid = property("MainPID");
    const status = rig.run("cat", `/proc/${pid}/status`);
    expect(/^Uid:\s+(\d+)/m.exec(status)![1]).not.toBe("0");
    expect(/^CapEff:\s+0+$/m.test(status)).toBe(true);
    for (const name of ["cmdline", "environ"]) expect(rig.run("cat", `/proc/${pid}/${name}`)).not.toContain(token);
    const metrics = await fetch(`http://127.0.0.1:${ports.ws}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    expect(metrics.status).toBe(200);

    expect(json(install("--dry-run", "--json"))).toMatchObject({ text: shown });
    expect(json(install("--json"))).toMatchObject({ token: "kept", changed: false, active: true });
    expect(property("MainPID")).toBe(pid);
    rig.run("kill", "-KILL", pid);
    await eventually(async () => property("MainPID") !== pid && (await health()));

    expect(json([PROGRAM, "relay-host", "service", "uninstall", "--yes", "--json"])).toEqual({
      unit: UNIT,
      removed: [`/etc/systemd/system/${UNIT}`],
      kept: ["/etc/clio-relay/relay-host.token"],
    });
    expect(rig.succeeds("systemctl", "cat", UNIT)).toBe(false);
    expect(json([PROGRAM, "relay-host", "service", "uninstall", "--purge", "--yes", "--json"])).toMatchObject({
      removed: ["/etc/clio-relay/relay-host.token"],
      kept: [],
    });
  });

  test("an executable that the service would not see is refused, and so is a user who is not root", () => {
    fs.mkdirSync(rig.file("root/bin"), { recursive: true });
    fs.copyFileSync(EXECUTABLE, rig.file("root/bin/clio-relay"));
    fs.chmodSync(rig.file("root/bin/clio-relay"), 0o755);
    const hidden = spawnSync(
      path.resolve(import.meta.dir, "../../rigs/systemd-overlay"),
      ["run", "/root/bin/clio-relay", ...install("--json").slice(1)],
      {
        encoding: "utf8",
        env: { ...process.env, RIG_DIR: rig.directory },
      },
    );
    expect([hidden.status === 0, JSON.parse(hidden.stderr)]).toMatchObject([false, { reason: "configuration_error" }]);
    rig.addUser("ada");
    expect(
      rig.succeeds("setpriv", "--reuid=ada", "--regid=ada", "--clear-groups", PROGRAM, "relay-host", "service", "uninstall", "--yes"),
    ).toBe(false);
    expect(fs.existsSync(rig.file(`etc/systemd/system/${UNIT}`))).toBe(false);
  });
});
