import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type SourceRelay, withWorker } from "../cli/source-relay.ts";
import { fastMcp } from "../rigs/fastmcp/client.ts";
import { mcpProgram } from "../rigs/mcp-programs/programs.ts";
import { describeWith } from "../runner/components.ts";
import { Agent } from "./agent.ts";

interface Answered {
  readonly state: string;
  readonly mcp_result: { readonly delivery: string; readonly is_error: boolean; readonly structured_result?: unknown };
}

/** For a call's result, on a machine that does other work. */
const WAIT_SECONDS = 110;

/** Register a server, have it asked, and tell what agents are shown of it. */
async function offered(relay: SourceRelay, name: string, command: readonly string[], tools: readonly string[]): Promise<string[]> {
  const [program = "", ...args] = command;
  const of = ["--cluster", "local", "--name", name];
  const given = args.map((arg) => `--arg=${arg}`);
  await relay.ok(
    "remote-mcp",
    "register",
    ...of,
    "--command",
    program,
    ...given,
    ...tools.flatMap((tool) => ["--allow-tool", tool]),
    "--reuse",
  );
  await relay.ok("remote-mcp", "refresh", ...of);
  const { tools: shown } = await relay.json<{ tools: { name: string }[] }>("remote-mcp", "reload", "--profile", "admin");
  return shown.map((tool) => tool.name).filter((tool) => tool.startsWith(`remote_${name}_`));
}

const textOf = (answer: { readonly content: readonly unknown[] }): string => (answer.content[0] as { text: string }).text;

describeWith("mcp-programs", "servers of others on a cluster, through the endpoint", () => {
  let relay: SourceRelay;
  let agent: Agent;
  let shown: string[];
  beforeAll(async () => {
    relay = await withWorker();
    const [everything, filesystem] = ["server-everything", "server-filesystem"].map((name) =>
      mcpProgram("@modelcontextprotocol", name, "dist", "index.js"),
    );
    fs.writeFileSync(path.join(relay.directory, "note.txt"), "what it says");
    shown = [
      ...(await offered(relay, "every", [process.execPath, everything!], ["echo", "get-sum", "get-tiny-image"])),
      ...(await offered(relay, "files", [process.execPath, filesystem!, fs.realpathSync(relay.directory)], ["*"])),
    ];
    agent = await Agent.of(relay, { args: ["--profile", "admin"] });
    // Answers are held against the schemas that are listed.
    await agent.client.listTools();
  });
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]();
    await relay?.[Symbol.asyncDispose]();
  });

  /** A call of a tool whose own arguments stand below `arguments`: its schema is an open one. */
  const call = (name: string, given: object) =>
    agent.client.callTool({
      name,
      arguments: { cluster: "local", arguments: given, controls: { wait_timeout_seconds: WAIT_SECONDS } },
    });

  test("what is allowed is shown, and nothing else", () => {
    expect(shown.slice(0, 3).sort()).toEqual(["remote_every_echo", "remote_every_get_sum", "remote_every_get_tiny_image"]);
    expect(shown).toContain("remote_files_read_text_file");
    expect(shown.filter((name) => name.startsWith("remote_every_"))).toHaveLength(3);
  });

  test("server-everything answers with text and with a picture, and says what is wrong with arguments", async () => {
    const echo = await call("remote_every_echo", { message: "ä" });
    expect(textOf(echo)).toBe("Echo: ä");
    const image = await call("remote_every_get_tiny_image", {});
    expect(image.content).toEqual(expect.arrayContaining([expect.objectContaining({ type: "image", mimeType: "image/png" })]));
    expect((await call("remote_every_get_sum", { a: "no number", b: 1 })).isError).toBe(true);
  });

  test("server-filesystem reads below its directory, and nowhere else", async () => {
    const read = (file: string) => call("remote_files_read_text_file", { path: file });
    const answer = await read(path.join(fs.realpathSync(relay.directory), "note.txt"));
    expect(textOf(answer)).toBe("what it says");
    expect(answer.structuredContent as unknown as Answered).toMatchObject({
      state: "succeeded",
      mcp_result: { delivery: "inline", is_error: false },
    });
    expect((await read("/etc/passwd")).isError).toBe(true);
  });
});

describeWith("fastmcp", "a server of the toolkit that clio-kit has come from", () => {
  let relay: SourceRelay;
  beforeAll(async () => {
    relay = await withWorker();
  });
  afterAll(async () => {
    await relay?.[Symbol.asyncDispose]();
  });

  test("compresses a file of the cluster's", async () => {
    const server = path.join(fastMcp.directory(), "agent-toolkit-mcp-servers/compression/src/server.py");
    expect(await offered(relay, "zip", [fastMcp.python(), server], ["*"])).toEqual(["remote_zip_compress_file"]);
    const file = path.join(relay.directory, "data.txt");
    fs.writeFileSync(file, "x".repeat(10_000));
    await using agent = await Agent.of(relay, { args: ["--profile", "admin"] });
    const given = { cluster: "local", file_path: file, wait_timeout_seconds: WAIT_SECONDS };
    const answer = await agent.ok<Answered>("remote_zip_compress_file", given);
    expect(answer).toMatchObject({ state: "succeeded", mcp_result: { delivery: "inline", is_error: false } });
    expect(Buffer.from(Bun.gunzipSync(fs.readFileSync(`${file}.gz`))).toString()).toBe("x".repeat(10_000));
  });
});
