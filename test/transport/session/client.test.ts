import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import ssh2 from "ssh2";
import type { Questions } from "../../../src/transport/session/authentication.ts";
import type { ClientSessionOptions } from "../../../src/transport/session/client-session.ts";
import { makeKeyPair, publicKeyOf } from "../../../src/transport/session/key-pair.ts";
import { fingerprintOf, lineOfPublicKey, publicKeyFromLine } from "../../../src/transport/session/keys.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { pairOfDuplexes } from "./duplexes.ts";
import { HOST, open, publicKey, serverOf, steps, USER } from "./peers.ts";

const directories = temporaryDirectories();

/** A server as a site has it: ssh2's own, with what the test says. */
function site(
  decide: (context: ssh2.AuthContext) => void,
  algorithms: Record<string, string[]> = { cipher: ["aes128-gcm@openssh.com"] },
  banner?: string,
) {
  const { client, server } = pairOfDuplexes();
  const config: ssh2.ServerConfig = {
    hostKeys: [HOST.privateKey],
    algorithms: algorithms as never,
    ...(banner === undefined ? {} : { banner }),
  };
  const serving = new ssh2.Server(config, (connection) => {
    connection.on("authentication", decide);
    connection.on("error", () => undefined);
  });
  serving.injectSocket(server as never);
  return { client, open: (options: Partial<ClientSessionOptions> = {}) => open(client, { algorithms: "site", user: "me", ...options }) };
}

describe("authentication with a site", () => {
  test("goes on where one method is not enough, with as many questions and rounds as the server wants", async () => {
    const rounds: Questions[] = [];
    const seen: unknown[] = [];
    const { open } = site((context) => {
      if (context.method === "password" && context.password === "secret") return context.reject(["keyboard-interactive"], true);
      if (context.method !== "keyboard-interactive") return context.reject(["password"]);
      context.prompt(
        [
          { prompt: "Code: ", echo: false },
          { prompt: "Name: ", echo: true },
        ],
        "two",
        "things",
        (first) => {
          context.prompt([{ prompt: "Again: ", echo: false }], (second) => {
            if (first.join() === "123,me" && second.join() === "456") context.accept();
            else context.reject();
          });
        },
      );
    });
    const session = await open({
      authenticate: (state) => {
        seen.push(state);
        if (seen.length === 1) return { method: "none" };
        if (!state.partialSuccess) return { method: "password", password: "secret" };
        return {
          method: "keyboard-interactive",
          answer: async (questions) => {
            rounds.push(questions);
            return rounds.length === 1 ? ["123", "me"] : ["456"];
          },
        };
      },
    });
    expect(seen).toEqual([
      { methods: null, partialSuccess: false },
      { methods: ["password"], partialSuccess: false },
      { methods: ["keyboard-interactive"], partialSuccess: true },
    ]);
    expect(rounds).toEqual([
      {
        name: "two",
        instructions: "things",
        prompts: [
          { text: "Code: ", echo: false },
          { text: "Name: ", echo: true },
        ],
      },
      { name: "", instructions: "", prompts: [{ text: "Again: ", echo: false }] },
    ]);
    session.close();
  });

  test("ends with what the asking rejects with", async () => {
    const cancelled = new Error("cancelled");
    const kbd = site((context) => (context.method === "keyboard-interactive" ? context.prompt("?", () => undefined) : context.reject()));
    await expect(
      kbd.open({ authenticate: () => ({ method: "keyboard-interactive", answer: () => Promise.reject(cancelled) }) }),
    ).rejects.toBe(cancelled);
    const asked = site((context) => context.reject());
    await expect(asked.open({ authenticate: () => Promise.reject(cancelled) })).rejects.toBe(cancelled);
  });

  test("says which methods are left when nothing has helped", async () => {
    const { open } = site((context) => context.reject(["publickey", "hostbased"]));
    await expect(open({ authenticate: steps({ method: "password", password: "x" }) })).rejects.toMatchObject({
      code: "authentication_failed",
      data: { methods: ["publickey", "hostbased"] },
    });
  });

  test("a password that has to be changed first is a refusal, not a silence", async () => {
    const { open } = site((context) => {
      if (context.method === "password") context.requestChange("change it", () => undefined);
      else context.reject(["password"]);
    });
    await expect(open({ authenticate: () => ({ method: "password", password: "old" }) })).rejects.toMatchObject({
      code: "authentication_failed",
    });
  });

  test("keys of an agent: those that were asked for, in that order", async () => {
    const directory = directories();
    const socket = path.join(directory, "agent");
    const agent = Bun.spawn(["ssh-agent", "-D", "-a", socket], { stdout: "ignore", stderr: "ignore" });
    try {
      await eventually(() => fs.existsSync(socket));
      const keys = [1, 2, 3].map((n) => {
        const pair = makeKeyPair(`key ${n}`);
        const file = path.join(directory, `key${n}`);
        fs.writeFileSync(file, pair.privateKey, { mode: 0o600 });
        expect(spawnSync("ssh-add", ["-q", file], { env: { SSH_AUTH_SOCK: socket } }).status).toBe(0);
        return publicKey(pair);
      });
      for (const only of [undefined, [keys[2]!, keys[0]!]]) {
        const tried: Buffer[] = [];
        const { open } = site((context) => {
          if (context.method !== "publickey") return context.reject(["publickey"]);
          if (context.signature !== undefined) return context.accept();
          tried.push(Buffer.from(context.key.data));
          if (tried.length === (only?.length ?? 3)) context.accept();
          else context.reject(["publickey"]);
        });
        const session = await open({
          authenticate: steps({ method: "publickey", agent: socket, ...(only === undefined ? {} : { only }) }),
        });
        expect(tried).toEqual(only ?? keys);
        session.close();
      }
      // An agent that is gone is a step that did not help.
      const gone = site((context) => (context.method === "password" ? context.accept() : context.reject()));
      const session = await gone.open({
        authenticate: steps({ method: "publickey", agent: path.join(directory, "nobody") }, { method: "password", password: "x" }),
      });
      session.close();
    } finally {
      agent.kill();
      await agent.exited;
    }
  });
});

describe("a bring-up", () => {
  test("has a deadline for the other side, which the time that a person takes is not part of", async () => {
    const slow = site((context) => {
      if (context.method === "keyboard-interactive") context.prompt("?", () => context.accept());
      else context.reject(["keyboard-interactive"]);
    });
    const session = await slow.open({
      deadlineMs: 2_500,
      verifyHostKey: (_key, answer) => void setTimeout(() => answer(true), 900) as undefined,
      authenticate: async () => {
        await Bun.sleep(900);
        return {
          method: "keyboard-interactive",
          answer: async () => {
            await Bun.sleep(900);
            return ["x"];
          },
        };
      },
    });
    session.close();
    for (const says of ["", "SSH-2.0-silent\r\n", "hello\r\n".repeat(3)]) {
      const { client, server } = pairOfDuplexes();
      server.write(says);
      server.resume();
      await expect(open(client, { deadlineMs: 50 })).rejects.toMatchObject({ code: "link_bringup_failed" });
    }
  });

  test("that is aborted is given up at once, and the Duplex with it", async () => {
    for (const when of ["before", "during the exchange", "while a person is asked"]) {
      const controller = new AbortController();
      const { client, server } = pairOfDuplexes();
      if (when === "while a person is asked") serverOf().server.serve(server);
      if (when === "before") controller.abort(new Error("stop"));
      const opening = open(client, {
        signal: controller.signal,
        authenticate: () => {
          controller.abort(new Error("stop"));
          return new Promise(() => undefined);
        },
      });
      if (when === "during the exchange") setTimeout(() => controller.abort(new Error("stop")), 10);
      await expect(opening, when).rejects.toThrow("stop");
      await eventually(() => client.destroyed, { what: when });
    }
  });

  test("that was said good-bye to takes no channel, as one that is over, before it has come to its end", async () => {
    const { client, server } = pairOfDuplexes();
    const greeted = Promise.withResolvers<ssh2.Connection>();
    const serving = new ssh2.Server({ hostKeys: [HOST.privateKey] }, (connection) => {
      connection.on("authentication", (context) => context.accept()).on("error", () => undefined);
      greeted.resolve(connection);
    });
    serving.injectSocket(server as never);
    const session = await open(client, { algorithms: "site", user: "me" });
    // The other side's end does not come: only that it leaves is said (RFC 4253, section 11.1).
    ((await greeted.promise) as unknown as { _protocol: { disconnect(reason: number): void } })._protocol.disconnect(11);
    const over = session.closed.then(() => "over");
    await eventually(() => !client.writable, { what: "the good-bye" });
    expect(await Promise.race([over, Promise.resolve("under way")])).toBe("under way");
    await expect(session.openSocket("/s")).rejects.toMatchObject({ code: "link_down" });
    await expect(session.openTcp("127.0.0.1", 1)).rejects.toMatchObject({ code: "link_down" });
    await expect(session.exec("true")).rejects.toMatchObject({ code: "link_down" });
    server.destroy();
    expect(await over).toBe("over");
  });

  test("with a site that has no cipher of ours says what it has", async () => {
    const { open } = site((context) => context.reject(), { cipher: ["aes256-ctr", "aes128-ctr"] });
    await expect(open()).rejects.toMatchObject({
      code: "algorithms_refused",
      data: { kind: "cipher", offered: ["aes256-ctr", "aes128-ctr"] },
    });
    const kex = site((context) => context.reject(), { kex: ["diffie-hellman-group14-sha1"] });
    await expect(kex.open()).rejects.toMatchObject({ code: "algorithms_refused", data: { kind: "key exchange" } });
  });

  test("with what is no SSH server is a failure with a reason", async () => {
    for (const says of ["HTTP/1.1 400 Bad Request\r\n\r\n", `${"x".repeat(20_000)}\n`, "SSH-1.5-old\r\n", Buffer.alloc(5_000, 0xff)]) {
      const { client, server } = pairOfDuplexes();
      server.resume();
      server.end(says);
      await expect(open(client)).rejects.toMatchObject({ code: "link_bringup_failed" });
    }
  });

  test("hands on the banner, and no more of it than 16 KiB", async () => {
    const said: string[] = [];
    const { open } = site((context) => context.accept(), undefined, `${"Welcome! ".repeat(3_000)}\n`);
    const session = await open({ onBanner: (text) => said.push(text) });
    expect(said.join("").startsWith("Welcome! Welcome!")).toBe(true);
    expect(said.join("")).toHaveLength(16_384);
    session.close();
  });
});

describe("keys", () => {
  test("are those that ssh-keygen reads, with its fingerprints", () => {
    const file = path.join(directories(), "key");
    const pair = makeKeyPair("a comment");
    fs.writeFileSync(file, pair.privateKey, { mode: 0o600 });
    const keygen = (...args: string[]): string => spawnSync("ssh-keygen", args, { encoding: "utf8" }).stdout;
    expect(keygen("-y", "-f", file).trim().split(" ").slice(0, 2).join(" ")).toBe(lineOfPublicKey(publicKey(pair)));
    expect(keygen("-l", "-f", file)).toContain(fingerprintOf(publicKey(pair)));
    expect(publicKeyOf(pair.privateKey)).toEqual(publicKey(pair));
  });

  test("that are none are refused", () => {
    for (const text of [
      "",
      "nonsense",
      USER.publicLine,
      "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
    ]) {
      expect(() => publicKeyOf(text)).toThrow("no private key");
    }
    for (const line of ["", "ssh-ed25519", "ssh-ed25519 AAAA", `ssh-rsa ${publicKey(USER).toString("base64")}`]) {
      expect(() => publicKeyFromLine(line)).toThrow("no public key line");
    }
  });
});
