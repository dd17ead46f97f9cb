import { afterAll, beforeAll, expect, test } from "bun:test";
import { hopSsh } from "../../../src/transport/ssh/connect.ts";
import { LoginNodes } from "../../rigs/login-nodes.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, userFile } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { Desk, noQuestions, output, Person } from "./desk.ts";

describeWith(["sshd", "ssh", "netns"], "two login nodes with one home", () => {
  const keys = temporaryDirectory();
  let nodes: LoginNodes;
  let user: RigUser;
  let key: string;

  beforeAll(async () => {
    nodes = await LoginNodes.start();
    user = makeUser();
    key = makeKey(keys.path, { passphrase: "opensesame" });
    authorize(user, `${key}.pub`);
  });
  afterAll(async () => {
    await nodes[Symbol.asyncDispose]();
    removeUser(user);
    keys[Symbol.dispose]();
  });

  function deskAt(address: string): Desk {
    const desk = new Desk();
    desk.configure("Host login", `  HostName ${address}`, `  User ${user.name}`, `  IdentityFile ${key}`);
    return desk;
  }

  test("whoever lands on the other one goes on to the right one in the same connection", async () => {
    const [one, two] = nodes.nodes;
    using desk = deskAt(one.address);
    desk.know(one.sshd.knownLine());
    const person = new Person(({ kind }) => (kind === "host_key" ? "yes" : "opensesame"));
    const request = desk.request(person);
    userFile(user, "shared", "the same home\n");
    {
      const first = await desk.connect(person);
      expect(await output(first, "hostname; cat shared")).toBe(`${one.name}\nthe same home\n`);
      const second = await hopSsh(first, { host: two.address }, request);
      expect(await output(second, "hostname; cat shared")).toBe(`${two.name}\nthe same home\n`);
      expect(second.hops.map(({ hostName }) => hostName)).toEqual([one.address, two.address]);
      // Its own key is asked about and remembered, and the passphrase again: nothing that was typed is kept.
      expect(person.kinds).toEqual(["passphrase", "host_key", "passphrase"]);
      expect(desk.knownHosts).toContain(two.sshd.knownLine());
      second.session.close();
      await first.session.closed;
    }
    await eventually(() => desk.ledger.entries()[0]!.ended_at, { what: "the end in the ledger" });
    expect(desk.ledger.entries()).toHaveLength(one.sshd.connections());
    expect(two.sshd.log).toContain(`Connection from ${one.address} `);
  });

  test("a node that cannot be reached, or nobody there, leaves the first connection as it is", async () => {
    const [one, two] = nodes.nodes;
    using desk = deskAt(one.address);
    desk.know(one.sshd.knownLine() + two.sshd.knownLine());
    await using first = await desk.connect(new Person(() => "opensesame"));
    const code = (error: { code: string }): string => error.code;
    const request = desk.request(new Person(noQuestions));
    expect(await hopSsh(first, { host: one.address, port: 1 }, request).then(() => "", code)).toBe("channel_refused");
    expect(await hopSsh(first, { host: two.address }, { ...request, attending: null }).then(() => "", code)).toBe("authorization_required");
    const cancelling = desk.request(new Person(() => undefined));
    expect(await hopSsh(first, { host: two.address }, cancelling).then(() => "", code)).toBe("prompt_cancelled");
    expect(await output(first, "hostname")).toBe(`${one.name}\n`);
    expect(desk.ledger.entries()).toHaveLength(1);
  });
});
