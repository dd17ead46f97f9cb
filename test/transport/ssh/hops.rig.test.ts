import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import fs from "node:fs";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd, userFile } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { Desk, noQuestions, output, Person } from "./desk.ts";

describeWith(["sshd", "ssh"], "ways with hops", () => {
  const keys = temporaryDirectory();
  let key: string;
  let user: RigUser;
  let hops: Sshd[];
  let desk: Desk;

  beforeAll(() => {
    key = makeKey(keys.path);
    user = makeUser();
    authorize(user, `${key}.pub`);
  });
  afterAll(() => {
    removeUser(user);
    keys[Symbol.dispose]();
  });
  beforeEach(async () => {
    hops = await Promise.all([startSshd(), startSshd(), startSshd()]);
    desk = new Desk();
    desk.know(hops.map((hop) => hop.knownLine()).join(""));
    desk.configure(...route("ProxyJump first,second"));
  });
  afterEach(async () => {
    for (const hop of hops) await hop[Symbol.asyncDispose]();
    desk[Symbol.dispose]();
  });

  /** A configuration in which `login` is the third, reached as `way` says. */
  function route(way: string, identity = key): string[] {
    const named = ["first", "second", "login"].flatMap((name, index) => [
      `Host ${name}`,
      `  HostName ${hops[index]!.host}`,
      `  Port ${hops[index]!.port}`,
      ...(name === "login" ? [`  ${way}`] : []),
    ]);
    return [...named, "Match all", `  User ${user.name}`, `  IdentityFile ${identity}`];
  }
  const counts = (): number[] => hops.map((hop) => hop.connections());

  test("two jumps are one connection of this machine, and end with the session", async () => {
    {
      await using link = await desk.connect(new Person(noQuestions));
      expect(await output(link, "echo there")).toBe("there\n");
      expect(link.hops.map(({ host }) => host)).toEqual(["first", "second", "login"]);
      expect(counts()).toEqual([1, 1, 1]);
      const [first, second, last] = hops.map((hop) => `${user.name}@${hop.host}:${hop.port}`);
      expect(desk.ledger.entries()).toMatchObject([{ target: last, via: [first, second], outcome: "open", ended_at: null }]);
    }
    await eventually(() => hops.every((hop) => /Disconnected from user|Connection closed by/.test(hop.log)), {
      what: "the end of every hop",
    });
    await eventually(() => desk.ledger.entries()[0]!.ended_at, { what: "the end in the ledger" });
  });

  test("a jump whose own entry has a jump, and our own reading of the configuration, go the same way", async () => {
    desk.configure(...route("ProxyJump second").map((line) => (line === "Host second" ? "Host second\n  ProxyJump first" : line)));
    for (const sshProgram of ["ssh", null]) {
      const request = desk.request(new Person(noQuestions));
      await using link = await desk.connect(new Person(noQuestions), { config: { ...request.config, sshProgram } });
      expect(link.hops.map(({ host }) => host)).toEqual(["first", "second", "login"]);
      expect(await output(link, "echo there")).toBe("there\n");
    }
    expect(counts()).toEqual([2, 2, 2]);
  });

  test("each hop is connected to a ProxyCommand's output, which ends with the session", async () => {
    desk.configure(...route(`ProxyCommand ssh -F ${desk.file("config")} -i ${key} -o IdentityAgent=none first -W %h:%p`));
    let running: () => string[];
    {
      await using link = await desk.connect(new Person(noQuestions));
      expect(await output(link, "echo there")).toBe("there\n");
      running = () =>
        // One that has ended meanwhile has none.
        fs
          .readdirSync("/proc")
          .filter((pid) => /^\d+$/.test(pid) && Bun.spawnSync(["cat", `/proc/${pid}/cmdline`]).stdout.includes(desk.file("config")));
      expect(running()).not.toEqual([]);
    }
    await eventually(() => running().length === 0, { what: "the end of the ProxyCommand" });
    expect(desk.ledger.entries()).toMatchObject([{ outcome: "open" }]);
    expect(counts()).toEqual([1, 0, 1]);
  });

  test("a ProxyCommand that fails is an error, and one that hangs ends with its request", async () => {
    desk.configure(...route("ProxyCommand sh -c 'echo nothing here >&2; exit 3'"));
    const error = await desk.refusal(new Person(noQuestions));
    expect(error.code).toBe("host_unreachable");
    expect(error.message).toEndWith("ended with code 3: nothing here");
    desk.configure(...route("ProxyCommand sleep 4321"));
    const controller = new AbortController();
    const attending = { requestedBy: "clio-relay connect rig", signal: controller.signal };
    const refused = desk.refusal(new Person(noQuestions), { attending }).catch((error: unknown) => error);
    const sleeping = (): boolean => Bun.spawnSync(["pgrep", "-f", "^sleep 4321$"]).exitCode === 0;
    await eventually(sleeping, { what: "the ProxyCommand" });
    controller.abort(new Error("gone"));
    expect(await refused).toMatchObject({ message: "gone" });
    await eventually(() => !sleeping(), { what: "the end of the ProxyCommand" });
    expect(desk.ledger.entries().map(({ outcome }) => outcome)).toEqual(["failed", "cancelled"]);
    expect(counts()).toEqual([0, 0, 0]);
  });

  test("a passphrase that opens a key for one hop opens it for the others", async () => {
    const locked = makeKey(keys.path, { passphrase: "opensesame" });
    userFile(user, ".ssh/authorized_keys", [key, locked].map((file) => fs.readFileSync(`${file}.pub`, "utf8")).join(""));
    desk.configure(...route("ProxyJump first,second", locked));
    const person = new Person(() => "opensesame");
    await using link = await desk.connect(person);
    expect(await output(link, "echo there")).toBe("there\n");
    expect(person.kinds).toEqual(["passphrase"]);
  });

  test("ConnectTimeout is kept for what follows the connection, too", async () => {
    desk.configure("Host *", "  ConnectTimeout 1", ...route("ProxyCommand sleep 4322"));
    const error = await desk.refusal(new Person(noQuestions));
    expect([error.code, error.message]).toEqual(["link_bringup_failed", expect.stringContaining("within 1000 ms")]);
  });

  test("a configuration whose command never ends ends with its request, also where that holds the outputs in a session of its own", async () => {
    desk.configure('Match exec "setsid sleep 4323; true"', ...route("ProxyJump first,second"));
    const controller = new AbortController();
    const attending = { requestedBy: "clio-relay connect rig", signal: controller.signal };
    const refused = desk.refusal(new Person(noQuestions), { attending }).catch((error: unknown) => error);
    const sleeping = (): boolean => Bun.spawnSync(["pgrep", "-f", "^sleep 4323$"]).exitCode === 0;
    await eventually(sleeping, { what: "the command" });
    controller.abort(new Error("gone"));
    expect(await refused).toMatchObject({ message: "gone" });
    Bun.spawnSync(["pkill", "-f", "^sleep 4323$"]);
  });

  test.each([0, 1, 2])("hop %d: an unknown key is asked about, a changed one is refused by name", async (index) => {
    const hop = hops[index]!;
    desk.know(hops.map((one) => (one === hop ? "" : one.knownLine())).join(""));
    const person = new Person(() => "yes");
    {
      await using link = await desk.connect(person);
      expect(await output(link, "echo there")).toBe("there\n");
    }
    expect(person.seen).toHaveLength(1);
    expect(person.seen[0]!.message).toContain(hop.fingerprint());
    await hop.changeHostKey();
    const error = await desk.refusal(new Person(noQuestions));
    expect(error.code).toBe("host_key_changed");
    expect(error.data["host"]).toBe(["first", "second", "login"][index]!);
    expect(hops[0]!.connections()).toBe(desk.ledger.entries().length);
    expect(counts()).toEqual([0, 1, 2].map((one) => (one <= index ? 2 : 1)));
  });

  test("a path that leads back to itself is refused before anything is dialed", async () => {
    desk.configure(...route("ProxyJump login"));
    for (const sshProgram of ["ssh", null]) {
      const { config } = desk.request(new Person(noQuestions));
      expect((await desk.refusal(new Person(noQuestions), { config: { ...config, sshProgram } })).code).toBe("configuration_error");
    }
    expect(desk.ledger.entries()).toEqual([]);
  });
});
