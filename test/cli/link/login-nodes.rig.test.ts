import { afterAll, beforeAll, expect, test } from "bun:test";
import { LoginNodes } from "../../rigs/login-nodes.ts";
import { RemoteWorker } from "../../rigs/remote-worker.ts";
import { authorize, makeKey, makeUser, must, type RigUser, removeUser } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { farLink, sshDesk } from "../ssh-desk.ts";

describeWith(["sshd", "ssh", "netns"], "a worker on another login node than the one that answers", () => {
  const keys = temporaryDirectory();
  let nodes: LoginNodes;
  let user: RigUser;
  let key: string;

  beforeAll(async () => {
    nodes = await LoginNodes.start();
    user = makeUser();
    key = makeKey(keys.path);
    authorize(user, `${key}.pub`);
    new RemoteWorker(user, "far");
    onNode(1, "~/.local/share/clio-relay/current/clio-relay worker start --cluster far");
  });
  afterAll(async () => {
    await nodes[Symbol.asyncDispose]();
    removeUser(user);
    keys[Symbol.dispose]();
  });

  /** Run a command on a node as somebody who logs in there. */
  const onNode = (index: 0 | 1, command: string): string => {
    const options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes", "LogLevel=ERROR"].flatMap((one) => [
      "-o",
      one,
    ]);
    return must("ssh", "-F", "none", ...options, "-i", key, `${user.name}@${nodes.nodes[index].address}`, command);
  };

  test("is reached within the same connection by the user's own ssh, too", async () => {
    const [one, two] = nodes.nodes;
    const known = `${one.address} ${one.sshd.hostKey()}\n${two.name} ${two.sshd.hostKey()}\n`;
    const before = one.sshd.connections();
    await using relay = await sshDesk({ directory: keys.path, sshd: one.sshd, user, key, known });
    await relay.ok("cluster", "add", "--name", "far", "--ssh-client", "openssh");
    expect(await relay.ok("connect", "far", "--no-input")).toStartWith("far is up: ");
    const id = await relay.submit("--wait", "--", "hostname");
    expect(await relay.ok("job", "read-log", id)).toBe(two.name);
    expect(await relay.json("cluster", "probe", "far")).toMatchObject({ host: { hostname: two.name } });
    expect((await farLink(relay)).ledger).toHaveLength(1);
    await relay.ok("disconnect", "far");
    expect(one.sshd.connections() - before).toBe(1);
  });

  test("is reached within the same connection; where it cannot be, both hosts and the way out are named", async () => {
    const [one, two] = nodes.nodes;
    const known = `${one.address} ${one.sshd.hostKey()}\n${two.name} ${two.sshd.hostKey()}\n`;
    const before = one.sshd.connections();
    await using relay = await sshDesk({ directory: keys.path, sshd: one.sshd, user, key, known });
    expect(await relay.ok("connect", "far", "--no-input")).toStartWith("far is up: ");
    const id = await relay.submit("--wait", "--", "hostname");
    expect(await relay.ok("job", "read-log", id)).toBe(two.name);
    expect((await farLink(relay)).ledger).toHaveLength(1);
    await relay.ok("disconnect", "far");

    await relay.ok("cluster", "pin-target", "far", "--target-hostname", one.name);
    const pinned = await relay.run(["connect", "far", "--no-input"]);
    expect([pinned.code, pinned.stderr]).toEqual([1, expect.stringContaining("[wrong_login_node]")]);
    expect(pinned.stderr).toContain(`pin-target far --target-hostname ${two.name}`);
    await relay.ok("cluster", "pin-target", "far", "--clear");
    await relay.ok("disconnect", "far");

    await two.sshd[Symbol.asyncDispose]();
    const lost = await relay.run(["connect", "far", "--no-input"]);
    expect([lost.code, lost.stderr]).toEqual([1, expect.stringContaining("[wrong_login_node]")]);
    for (const words of [one.name, two.name, `HostName ${two.name}`, "--take-over"]) expect(lost.stderr).toContain(words);
    expect(one.sshd.connections() - before).toBe(3);
  });
});
