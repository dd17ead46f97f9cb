import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { COMMANDS } from "../../src/cli/commands.ts";
import { suggestionOf } from "../../src/cli/complete/suggestion.ts";
import { runCli } from "../../src/cli/main.ts";
import type { Flag } from "../../src/cli/verb.ts";
import { capturedIo } from "./captured-io.ts";
import { initialized, MAIN, type SourceRelay } from "./source-relay.ts";

const SHA256 = "0123456789abcdef".repeat(4);

/** What each option needs beside it so that its file is looked for: words before it, and what it is given, where FILE is the file. */
const READ: Readonly<Record<string, readonly [before: string, given?: string]>> = {
  "install-frp --from": [`--sha256 ${SHA256}`],
  "mcp-call --arguments-json-file": ["--cluster local --server s --tool t"],
  "jarvis-mcp-call --arguments-json-file": ["--cluster local --tool t"],
  "job submit --script": ["--cluster local"],
  "job submit --jarvis-yaml": ["--cluster local"],
  "job submit --input": ["--cluster local --script there", "deck=FILE"],
  "job submit --sbatch": ["--cluster local"],
  "job submit --qsub": ["--cluster local"],
  "job record-progress --metadata-json-file": ["job_0123456789abcdef0123456789abcdef --label l"],
  "job record-task-event --metadata-json-file": ["task_0123456789abcdef0123456789abcdef --event-type t --label l --summary s"],
  "emit progress --metadata-json-file": ["--label l"],
  "emit task-event --metadata-json-file": ["--event-type t --label l --summary s"],
  "worker run --relay-token-file": ["--cluster local --relay-host wss://r"],
  "worker pair --relay-token-file": ["--cluster local --relay-host wss://r"],
  "worker pair --relay-ca-file": ["--cluster local --relay-host wss://r --relay-token-file token"],
  "api start --tls-cert": ["--tls-key there"],
  "api start --tls-key": ["--tls-cert certificate"],
  "cluster add --relay-token-file": ["x --relay-host wss://r"],
  "cluster add --relay-ca-file": ["x --relay-host wss://r --relay-token-file token"],
  "cluster add --frp-token-file": ["x --frp-server-addr h"],
  "cluster add --stcp-secret-file": ["x --frp-server-addr h"],
  "cluster add --frp-ca-file": ["x --frp-server-addr h"],
  "cluster add --env-setup-file": ["x --ssh-host h"],
  "cluster add --env-setup": ["x --ssh-host h", "@FILE"],
  "cluster bootstrap --artifact": ["far"],
  "cluster bootstrap --jarvis-from": ["far --artifact there"],
  "cluster bootstrap --pyyaml-wheel": ["far --artifact there --jarvis-from there"],
  "relay-host serve --tls-cert": ["--listen 127.0.0.1:0 --tls-key there --token-file token"],
  "relay-host serve --tls-key": ["--listen 127.0.0.1:0 --tls-cert certificate --token-file token"],
  "relay-host serve --token-file": ["--listen-ws 127.0.0.1:0"],
  "relay-host render-frps-config --token": ["", "@FILE"],
  "relay-host render-frpc-config --token": ["--cluster frp --local-port 9", "@FILE"],
  "relay-host render-frpc-config --secret-key": ["--cluster frp --local-port 9", "@FILE"],
  "relay-host render-frpc-visitor-config --token": ["--cluster frp --bind-port 9", "@FILE"],
  "relay-host render-frpc-visitor-config --secret-key": ["--cluster frp --bind-port 9", "@FILE"],
  "agent run --prompt-file": ["--cluster local"],
  "agent run --mcp-config-file": ["--cluster local --prompt /p"],
};

/** Options whose file is another machine's, may come later, is made where it is not there, or is looked for after a service manager. */
const ELSEWHERE = [
  "worker run --relay-ca-file",
  "api start --token-file",
  "cluster add --frpc-bin",
  "relay-host render-frpc-config --trusted-ca-file",
  "relay-host render-frpc-visitor-config --trusted-ca-file",
  "relay-host service install --tls-cert",
  "relay-host service install --tls-key",
  "relay-host service install --token-file",
];

/** Options that name a file to be written: its directory has to be there. */
const WRITTEN: Readonly<Record<string, string>> = {
  "agent render-mcp-config --output": "--client codex",
  "relay-host render-frps-config --output": "",
};
/** These are asked for what they write first. */
const WRITTEN_LATER = [
  "job provenance --output",
  "job read-artifact --output",
  "relay-host render-frpc-config --output",
  "relay-host render-frpc-visitor-config --output",
];

const namesFile = (flag: Flag): boolean => "reader" in flag && (suggestionOf(flag.reader) === "file" || /FILE/.test(flag.reader.label));

let relay: SourceRelay;
beforeAll(async () => {
  relay = await initialized();
  await relay.ok("cluster", "add", "far", "--ssh-host", "nowhere.invalid");
  await relay.ok("cluster", "add", "frp", "--frp-server-addr", "nowhere.invalid");
  const put = (name: string, text: string) => fs.writeFileSync(path.join(relay.directory, name), text, { mode: 0o600 });
  put("there", "there");
  put("token", SHA256);
  put("certificate", "-----BEGIN CERTIFICATE-----\n");
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

async function cli(line: string): Promise<{ code: number; reason: string; detail: string }> {
  const io = { ...capturedIo({ variables: relay.environment, cwd: relay.directory }), self: [process.execPath, MAIN] };
  const code = await runCli([...line.split(" ").filter((word) => word !== ""), "--json", "--no-input"], io);
  expect([line, io.stdout.text]).toEqual([line, ""]);
  const { reason, detail } = JSON.parse(io.stderr.text) as { reason: string; detail: string };
  return { code, reason, detail };
}

describe("a file that a command line names and that is not there", () => {
  test.each(Object.entries(READ))("%s: ends with 2, and names it", async (option, [before, given = "FILE"]) => {
    const at = option.lastIndexOf(" ");
    for (const file of ["absent", "there/absent"]) {
      const { code, reason, detail } = await cli(`${option.slice(0, at)} ${before} ${option.slice(at + 1)} ${given.replace("FILE", file)}`);
      expect([code, detail]).toEqual([2, expect.stringMatching(new RegExp(`${file}.*not there|${file}: there is no such file`))]);
      expect(["local_file_missing", "configuration_error"]).toContain(reason);
    }
  });

  test.each(Object.entries(WRITTEN))("%s: a directory to write to, likewise", async (option, before) => {
    const at = option.lastIndexOf(" ");
    const { code, reason, detail } = await cli(`${option.slice(0, at)} ${before} ${option.slice(at + 1)} absent/made`);
    expect([code, reason, detail]).toEqual([2, "local_file_missing", expect.stringContaining("there is no directory")]);
  });

  test("these are all options that name one", async () => {
    const found: string[] = [];
    for (const [noun, verbs] of Object.entries(COMMANDS))
      for (const [name, command] of Object.entries(verbs)) {
        if (command.alias) continue;
        const { verb } = await command.load();
        for (const [option, flag] of Object.entries(verb.flags)) if (namesFile(flag)) found.push(`${noun} ${name} --${option}`.trim());
      }
    const known = [
      ...Object.keys(READ).filter((one) => one !== "cluster add --env-setup"),
      ...ELSEWHERE,
      ...Object.keys(WRITTEN),
      ...WRITTEN_LATER,
    ];
    expect(found.toSorted()).toEqual(known.toSorted());
  });
});
