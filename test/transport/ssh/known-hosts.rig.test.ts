import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { RelayError } from "../../../src/domain/errors.ts";
import { fingerprintOf, publicKeyFromLine, typeOf } from "../../../src/transport/session/keys.ts";
import { knownKeys } from "../../../src/transport/ssh/known-hosts/file.ts";
import { type Judgement, judge } from "../../../src/transport/ssh/known-hosts/judge.ts";
import { rememberKey } from "../../../src/transport/ssh/known-hosts/remember.ts";
import { makeKey, must, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectories, temporaryDirectory } from "../../runner/temporary.ts";

describeWith(["sshd", "ssh"], "known_hosts", () => {
  const directory = temporaryDirectories();
  const keys = temporaryDirectory();
  /** `TYPE BASE64` of some keys. */
  let lines: string[];
  let sshd: Sshd;

  beforeAll(async () => {
    sshd = await startSshd();
    const made = ["ed25519", "ed25519", "ecdsa"].map((type) => makeKey(keys.path, { type }));
    const others = made.map((file) => fs.readFileSync(`${file}.pub`, "utf8").split(" ").slice(0, 2).join(" "));
    lines = [sshd.hostKey(), ...others];
  });
  afterAll(async () => {
    await sshd[Symbol.asyncDispose]();
    keys[Symbol.dispose]();
  });

  /** What ssh-keygen puts in the place of names. */
  function hashed(name: string, key: string): string {
    const file = path.join(directory(), "one");
    fs.writeFileSync(file, `${name} ${key}\n`);
    must("ssh-keygen", "-q", "-H", "-f", file);
    return fs.readFileSync(file, "utf8").trim();
  }

  test("lines are found as ssh-keygen -F finds them", () => {
    const file = path.join(directory(), "known");
    const names = ["login", "login.example.org", "[login]:2222", "10.0.0.1", "Node7"];
    const field = fc.constantFrom(
      "login",
      "*.example.org",
      "login*",
      "!login",
      "*,!login",
      "[login]:2222",
      "10.0.0.?",
      "NODE7,login",
      "*",
      "[*]:2222",
      "a,b",
    );
    const line = fc.oneof(
      fc
        .tuple(
          fc.constantFrom("", "@revoked ", "@cert-authority ", "@other "),
          field,
          fc.constantFrom(0, 1, 2, 3),
          fc.constantFrom("", " comment", "  # x"),
        )
        .map(([marker, name, key, end]) => `${marker}${name} ${lines[key]}${end}`),
      fc
        .tuple(fc.constantFrom("login", "[login]:2222", "10.0.0.1"), fc.constantFrom(0, 1, 2, 3))
        .map(([name, key]) => hashed(name, lines[key]!)),
      fc.constantFrom("", "# login", "   ", "login", "login ssh-ed25519", "|1|x|y ssh-ed25519 AAAA", "|2|a|b c d"),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), fc.constantFrom(...names), (content, name) => {
        fs.writeFileSync(file, content.map((text) => `${text}\n`).join(""));
        const theirs = spawnSync("ssh-keygen", ["-F", name, "-f", file], { encoding: "utf8" }).stdout;
        const found = [...theirs.matchAll(/^# Host .* found: line (\d+)/gm)].map(([, number]) => Number(number));
        expect(knownKeys(name, [file]).map((one) => one.line)).toEqual(found);
      }),
      { numRuns: 150 },
    );
  });

  test("a server's key is judged as ssh judges it", () => {
    const file = path.join(directory(), "known");
    const name = `[${sshd.host}]:${sshd.port}`;
    const key = publicKeyFromLine(sshd.hostKey());
    const line = fc
      .tuple(
        fc.constantFrom("", "", "", "@revoked "),
        fc.constantFrom(name, `*,!x`, sshd.host, "[other]:22", "*"),
        fc.constantFrom(0, 0, 1, 2, 3),
        fc.boolean(),
      )
      .map(([marker, host, index, hide]) =>
        hide && marker === "" && !host.includes("*") ? hashed(host, lines[index]!) : `${marker}${host} ${lines[index]}`,
      );
    const seen = new Set<Judgement["kind"]>();
    fc.assert(
      fc.property(fc.array(line, { maxLength: 4 }), (content) => {
        fs.writeFileSync(file, content.map((text) => `${text}\n`).join(""));
        const options = [
          "-F",
          "none",
          "-o",
          `UserKnownHostsFile=${file}`,
          "-o",
          "GlobalKnownHostsFile=/dev/null",
          "-o",
          "StrictHostKeyChecking=yes",
        ];
        // The key is judged before anybody is let in, and nobody is: there is no key to try.
        const more = ["-o", "BatchMode=yes", "-o", "IdentityFile=none", "-o", "IdentityAgent=none", "-o", "HostKeyAlgorithms=ssh-ed25519"];
        const theirs = spawnSync("ssh", [...options, ...more, "-p", String(sshd.port), sshd.host, "true"], { encoding: "utf8" }).stderr;
        const ours = judge(key, { name, bare: sshd.host, files: [file] });
        seen.add(ours.kind);
        const passed = theirs.includes("Permission denied (");
        expect(ours.kind === "known", `${content.join("\n")}\n${theirs}`).toBe(passed);
        if (ours.kind === "changed") expect(theirs).toContain("REMOTE HOST IDENTIFICATION HAS CHANGED");
        if (ours.kind === "revoked") expect(theirs).toContain("REVOKED");
      }),
      { numRuns: 50 },
    );
    expect([...seen].sort()).toEqual(["changed", "known", "new", "revoked"]);
  });

  test("the fingerprint is the one that ssh-keygen -l shows", () => {
    expect(fingerprintOf(publicKeyFromLine(sshd.hostKey()))).toBe(sshd.fingerprint());
  });

  test.each([
    ["plain", "login", false],
    ["hashed", "login", true],
    ["with a port", "[login]:2222", false],
    ["an alias that would be a pattern", "lo*gin here", false],
  ])("a key that is remembered (%s) is one that ssh-keygen finds, once", async (_what, name, hash) => {
    const file = path.join(directory(), "deep", "known");
    const key = publicKeyFromLine(lines[0]!);
    await Promise.all([1, 2, 3].map(() => rememberKey(file, name, typeOf(key), key, hash)));
    const found = spawnSync("ssh-keygen", ["-F", name, "-f", file], { encoding: "utf8" }).stdout;
    expect(found.match(/found: line/g)).toHaveLength(1);
    expect(found).toContain(lines[0]!);
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    expect(fs.readFileSync(file, "utf8").startsWith("|1|")).toBe(hash || name.includes("*"));
  });

  test("lines whose key is none say nothing", () => {
    const file = path.join(directory(), "known");
    fs.writeFileSync(file, `login ssh-ed25519 !!!!\nlogin ssh-rsa AAAAB3\nlogin ssh-rsa ${lines[0]!.split(" ")[1]}\nlogin ${lines[0]}\n`);
    expect(knownKeys("login", [file]).map(({ line }) => line)).toEqual([4]);
  });

  test("a last line without an end is not run into", async () => {
    const file = path.join(directory(), "known");
    fs.writeFileSync(file, `other ${lines[1]}`);
    const key = publicKeyFromLine(lines[0]!);
    await rememberKey(file, "login", typeOf(key), key, false);
    expect(fs.readFileSync(file, "utf8")).toBe(`other ${lines[1]}\nlogin ${lines[0]}\n`);
  });

  test("a certificate authority alone is said, and a file that cannot be read is not an empty one", () => {
    const file = path.join(directory(), "known");
    const key = publicKeyFromLine(lines[0]!);
    fs.writeFileSync(file, `@cert-authority *.example.org ${lines[1]}\n`);
    expect(judge(key, { name: "login.example.org", bare: null, files: [file] }).kind).toBe("certified");
    fs.mkdirSync(path.join(path.dirname(file), "folder"));
    const error = (() => {
      try {
        return knownKeys("login", [path.join(path.dirname(file), "folder")]);
      } catch (caught) {
        return caught;
      }
    })();
    expect(error).toBeInstanceOf(RelayError);
    expect((error as RelayError).code).toBe("local_file_unusable");
    expect(knownKeys("login", [path.join(path.dirname(file), "absent"), "/dev/null"])).toEqual([]);
  });
});
