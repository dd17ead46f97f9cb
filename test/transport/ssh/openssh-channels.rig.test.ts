import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import type { RelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import type { ExecChannel } from "../../../src/transport/session/session.ts";
import type { HeldConnection } from "../../../src/transport/ssh/held.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, SshAgent, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { readAll } from "../session/peers.ts";
import { Desk, noQuestions, Person } from "./desk.ts";
import { codeOf, end, hostLines, leftovers, start, whoIs } from "./openssh.ts";

/** A site that allows one session frees it a moment after it was closed. */
const execSoon = ({ session }: HeldConnection, command: string): Promise<ExecChannel> =>
  eventually(() => session.exec(command).catch(() => null), { what: "a free session" });

/** Processes that have this in their arguments. */
function processesWith(text: string): number[] {
  return fs
    .readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid && argumentsOf(pid).includes(text) && programOf(pid) !== "bun");
}

function argumentsOf(pid: number): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}

const programOf = (pid: number): string => path.basename(argumentsOf(pid).split("\0")[0]!);

describeWith(["sshd", "ssh"], "what rides one ssh process of the user's OpenSSH", () => {
  let plain: Sshd;
  let user: RigUser;
  let key: string;
  const keys = fs.mkdtempSync("/tmp/clio-relay-keys-");

  beforeAll(async () => {
    plain = await startSshd();
    user = makeUser();
    key = makeKey(keys);
    authorize(user, `${key}.pub`);
  });
  afterAll(async () => {
    await plain[Symbol.asyncDispose]();
    removeUser(user);
    fs.rmSync(keys, { recursive: true });
  });

  test("when ssh is killed, what is open ends, nothing can be opened, and nothing is dialed", async () => {
    await using agent = await SshAgent.start(key);
    using desk = new Desk();
    desk.know(plain.knownLine());
    desk.configure(...hostLines(plain, user.name, "IdentityAgent SSH_AUTH_SOCK"));
    const before = plain.connections();
    const connection = await start(desk, new Person(noQuestions), { agentSocket: agent.socket });
    const { stream, exited } = await connection.session.exec("exec cat");
    const open = once(stream, "data");
    stream.write("there and back");
    expect(String((await open)[0])).toBe("there and back");
    const [holder] = processesWith(desk.directory).filter((pid) => programOf(pid) === "ssh");
    process.kill(holder!, "SIGKILL");
    expect(await exited).toEqual({ code: null, signal: null });
    expect((await connection.session.closed)?.code).toBe("link_down");
    expect(await codeOf(connection.session.exec("true"))).toBe("link_down");
    expect(await codeOf(connection.session.openTcp("127.0.0.1", 1))).toBe("link_down");
    expect(await codeOf(connection.session.roundTrip())).toBe("link_down");
    expect(await codeOf(connection.goOn("127.0.0.1", desk.request(new Person(noQuestions), { agentSocket: agent.socket })))).toBe(
      "link_bringup_failed",
    );
    expect(plain.connections() - before).toBe(1);
    expect(desk.ledger.entries()).toMatchObject([{ outcome: "open", reason: "link_down" }]);
    expect(leftovers(desk)).toEqual([]);
  });

  test("channels carry any bytes, end by halves, tell refusals and statuses, and answer sshd's own questions", async () => {
    await using alive = await startSshd({ config: ["ClientAliveInterval 1", "ClientAliveCountMax 2", "MaxSessions 1"] });
    await using agent = await SshAgent.start(key);
    using desk = new Desk();
    desk.know(alive.knownLine());
    desk.configure(...hostLines(alive, user.name, "IdentityAgent SSH_AUTH_SOCK"));
    const connection = await start(desk, new Person(noQuestions), { agentSocket: agent.socket });
    const { session } = connection;
    expect(await session.roundTrip()).toBeGreaterThan(0);
    const cat = await execSoon(connection, "cat; echo over >&2; exit 7");
    const [back, said] = [readAll(cat.stream), readAll(cat.stderr as Duplex)];
    const data = randomBytes(5_000_003);
    for (let at = 0; at < data.length; at += 70_001) cat.stream.write(data.subarray(at, at + 70_001));
    cat.stream.end();
    expect(sha256Hex(await back)).toBe(sha256Hex(data));
    expect([String(await said), await cat.exited]).toEqual(["over\n", { code: 7, signal: null }]);
    expect(await (await execSoon(connection, "kill -KILL $$")).exited).toEqual({ code: null, signal: "SIGKILL" });

    // One that nobody reads holds up nothing but itself, and sshd asks on it whether we are there.
    const unread = await execSoon(connection, "cat /dev/zero");
    const refused = await session.exec("true").catch((error: RelayError) => error);
    expect(refused).toMatchObject({ code: "channel_refused", data: { reason: "connect_failed" } });
    await Bun.sleep(4_000);
    expect(await session.roundTrip()).toBeGreaterThan(0);
    unread.close();
    await unread.exited;

    const socket = desk.file("socket");
    fs.chmodSync(desk.directory, 0o711);
    expect(await session.openSocket(socket).catch((error: RelayError) => error)).toMatchObject({
      code: "channel_refused",
      data: { reason: "connect_failed" },
    });
    const server = net.createServer({ allowHalfOpen: true }, (one) => void readAll(one).then((heard) => one.end(`heard ${heard.length}`)));
    await once(server.listen(socket), "listening");
    fs.chmodSync(socket, 0o666);
    const channel = await session.openSocket(socket);
    channel.end(data);
    expect(String(await readAll(channel))).toBe(`heard ${data.length}`);
    const cutting = await session.openSocket(socket);
    spawnSync("pkill", ["-KILL", "-f", `^sshd: ${user.name}`]);
    await eventually(() => cutting.closed, { what: "the end of the channel" });
    expect(cutting.errored).toMatchObject({ code: "link_down" });
    expect((await session.closed)?.code).toBe("link_down");
    expect(alive.connections()).toBe(1);
    server.close();
  });

  test("a socket where nobody listens may be asked for as often as one likes, and is found once somebody does", async () => {
    await using agent = await SshAgent.start(key);
    using desk = new Desk();
    desk.know(plain.knownLine());
    desk.configure(...hostLines(plain, user.name, "IdentityAgent SSH_AUTH_SOCK"));
    const connection = await start(desk, new Person(noQuestions), { agentSocket: agent.socket });
    const { session } = connection;
    const socket = desk.file("socket");
    fs.chmodSync(desk.directory, 0o711);
    const outcomes = new Set<string>();
    for (let round = 0; round < 165; round++) {
      const codes = await Promise.all(Array.from({ length: 100 }, () => codeOf(session.openSocket(socket))));
      for (const code of codes) outcomes.add(code);
    }
    expect([...outcomes]).toEqual(["channel_refused"]);
    const server = net.createServer((one) => one.end("here"));
    await once(server.listen(socket), "listening");
    fs.chmodSync(socket, 0o666);
    // Whoever does something on the host may have started what was missing.
    expect(await whoIs(connection)).toStartWith(user.name);
    expect(String(await readAll(await session.openSocket(socket)))).toBe("here");
    server.close();
    await end(connection);
  });

  test("ssh ends with the process that holds it, however that ends", async () => {
    await using agent = await SshAgent.start(key);
    using desk = new Desk();
    desk.know(plain.knownLine());
    desk.configure(...hostLines(plain, user.name, "IdentityAgent SSH_AUTH_SOCK"));
    const child = Bun.spawn([process.execPath, path.join(import.meta.dir, "openssh-child.ts"), desk.directory, agent.socket], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const reader = child.stdout.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe("open\n");
    expect(processesWith(desk.directory).length).toBeGreaterThan(0);
    child.kill("SIGKILL");
    await eventually(() => processesWith(desk.directory).length === 0, { what: "the end of ssh" });
  });
});
