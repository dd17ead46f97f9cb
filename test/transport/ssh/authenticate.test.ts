import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../../src/domain/errors.ts";
import type { AuthenticationStep } from "../../../src/transport/session/authentication.ts";
import { Login } from "../../../src/transport/ssh/authenticate.ts";
import { type ConfigContext, resolveTarget } from "../../../src/transport/ssh/config/resolve.ts";
import { inspectKey } from "../../../src/transport/ssh/key-file.ts";
import { ask, serverText } from "../../../src/transport/ssh/prompt.ts";
import { rsaBits } from "../../../src/transport/ssh/public-key.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { type Answers, noQuestions, Person } from "./desk.ts";
import { thisAccount } from "./this-account.ts";

const directory = temporaryDirectories();

async function login(answers: Answers, ...lines: string[]): Promise<{ login: Login; person: Person }> {
  const home = directory();
  const configFile = path.join(home, "config");
  fs.writeFileSync(configFile, `${["IdentityFile none", "User me", ...lines].join("\n")}\n`, { mode: 0o600 });
  const account = { ...thisAccount(), home };
  const context: ConfigContext = { account, sshProgram: null, configFile, variables: {}, directory: home };
  const target = await resolveTarget({ host: "login" }, context);
  const person = new Person(answers);
  return { login: new Login({ target, agentSocket: null, uid: account.uid, prompter: person, keyRing: new Map() }), person };
}

const state = (...methods: string[]) => ({ methods, partialSuccess: false });
type Conversation = Extract<AuthenticationStep, { method: "keyboard-interactive" }>;
const question = (text: string, echo = false) => ({ name: "", instructions: "", prompts: [{ text, echo }] });

test("it asks which methods there are, and follows the order of the configuration", async () => {
  const { login: one } = await login(() => "secret", "PreferredAuthentications password,keyboard-interactive");
  expect(await one.authenticate({ methods: null, partialSuccess: false })).toEqual({ method: "none" });
  expect(await one.authenticate(state("publickey", "keyboard-interactive", "password"))).toEqual({
    method: "password",
    password: "secret",
  });
  expect(await one.authenticate(state("keyboard-interactive"))).toMatchObject({ method: "keyboard-interactive" });
});

test("methods that are switched off are not used, and what the server takes is said", async () => {
  const { login: one } = await login(noQuestions, "PasswordAuthentication no", "KbdInteractiveAuthentication no");
  const error = await Promise.resolve(one.authenticate(state("password", "keyboard-interactive", "gssapi-with-mic"))).catch(
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(RelayError);
  expect(error).toMatchObject({
    code: "authentication_failed",
    data: { methods: ["password", "keyboard-interactive", "gssapi-with-mic"], tried: [] },
  });
  expect((error as RelayError).hint).toContain("openssh");
});

test("a password is asked for as often as NumberOfPasswordPrompts says", async () => {
  const { login: one, person } = await login(() => "wrong", "NumberOfPasswordPrompts 2");
  for (let turn = 0; turn < 2; turn++) expect(await one.authenticate(state("password"))).toMatchObject({ method: "password" });
  expect(await Promise.resolve(one.authenticate(state("password"))).catch((error: RelayError) => error.code)).toBe("authentication_failed");
  expect(person.seen.map(({ message }) => message)).toEqual(["me@login's password: ", "That was not accepted.\nme@login's password: "]);
});

describe("a conversation", () => {
  test("has several prompts and rounds; what a server says obeys no terminal; information is shown with the next question", async () => {
    const { login: one, person } = await login(({ echo }) => (echo ? "seen" : "hidden"));
    const { answer } = (await one.authenticate(state("keyboard-interactive"))) as Conversation;
    expect(
      await answer({
        name: "Site\x1b[31m",
        instructions: "Two\r\nlines",
        prompts: [
          { text: "A\x07: ", echo: false },
          { text: "B: ", echo: true },
        ],
      }),
    ).toEqual(["hidden", "seen"]);
    expect(await answer({ name: "", instructions: "The code was sent", prompts: [] })).toEqual([]);
    expect(await answer(question("Code: "))).toEqual(["hidden"]);
    expect(person.seen.map(({ message, echo }) => [message, echo])).toEqual([
      ["Site^[[31m\nTwo\nlines\nA^G: ", false],
      ["B: ", true],
      ["The code was sent\nCode: ", false],
    ]);
  });

  test("that never ends is ended", async () => {
    const { login: one } = await login(() => "x");
    const { answer } = (await one.authenticate(state("keyboard-interactive"))) as Conversation;
    for (let round = 0; round < 16; round++) expect(await answer(question("again: "))).toEqual(["x"]);
    expect(await answer(question("again: ")).catch((error: RelayError) => error.code)).toBe("authentication_failed");
  });

  test("in which nothing is asked is not begun a second time", async () => {
    const { login: one } = await login(noQuestions);
    expect(await one.authenticate(state("keyboard-interactive"))).not.toBeNull();
    expect(await Promise.resolve(one.authenticate(state("keyboard-interactive"))).catch((error: RelayError) => error.code)).toBe(
      "authentication_failed",
    );
  });
});

test("texts and answers have bounds", async () => {
  expect(serverText("x".repeat(10_000)).length).toBe(4_097);
  const prompt = { kind: "password", message: "?", echo: false, host: "h" } as const;
  for (const answer of ["x".repeat(5_000), "a\0b"]) {
    expect(await ask(new Person(() => answer), prompt).catch((error: RelayError) => error.code)).toBe("prompt_cancelled");
  }
});

test.each<[string, string]>([
  ["is no private key", "hello"],
  ["is damaged", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"],
  ["PKCS#8", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"],
  ["not supported", "-----BEGIN DSA PRIVATE KEY-----\nAAAA\n-----END DSA PRIVATE KEY-----\n"],
])("a key file that %s is passed over with a reason", (why, text) => {
  expect(inspectKey("/k", text, null)).toEqual({ why: expect.stringContaining(why) });
});

test("a key that is only on a token, or behind a cipher or a number of rounds that nobody waits for, is passed over", () => {
  const field = (bytes: Buffer | string): Buffer => {
    const content = Buffer.from(bytes);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(content.length);
    return Buffer.concat([length, content]);
  };
  const number = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  };
  const file = (cipher: string, rounds: number, type: string): string => {
    const options = Buffer.concat([field("salt"), number(rounds)]);
    const key = Buffer.concat([field(type), field("x".repeat(32))]);
    const bytes = Buffer.concat([
      Buffer.from("openssh-key-v1\0"),
      field(cipher),
      field("bcrypt"),
      field(options),
      number(1),
      field(key),
      field("secret"),
    ]);
    return `-----BEGIN OPENSSH PRIVATE KEY-----\n${bytes.toString("base64")}\n-----END OPENSSH PRIVATE KEY-----\n`;
  };
  expect(inspectKey("/k", file("aes256-ctr", 16, "ssh-ed25519"), null)).toMatchObject({ encrypted: true });
  expect(inspectKey("/k", file("aes256-ctr", 16, "sk-ssh-ed25519@openssh.com"), null)).toEqual({
    why: expect.stringContaining("sk-ssh-ed25519"),
  });
  expect(inspectKey("/k", file("chacha20-poly1305@openssh.com", 16, "ssh-ed25519"), null)).toEqual({
    why: expect.stringContaining("chacha20"),
  });
  expect(inspectKey("/k", file("aes256-ctr", 1_000_000, "ssh-ed25519"), null)).toHaveProperty("why");
});

test("bits of an RSA key", () => {
  const modulus = Buffer.concat([Buffer.from([0]), Buffer.alloc(128, 0xff)]);
  const blob = [Buffer.from("ssh-rsa"), Buffer.from([1, 0, 1]), modulus].map((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    return Buffer.concat([length, part]);
  });
  expect(rsaBits(Buffer.concat(blob))).toBe(1_024);
  expect(rsaBits(Buffer.concat(blob).subarray(0, 40))).toBeNull();
});
