import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { configurationOf } from "../../../src/cli/agent/render-mcp-config.ts";
import { initialized } from "../source-relay.ts";

test("what a client is given reads back as it was meant, whatever is in it", () => {
  const started = { command: '/opt/a "b"\\c\u007f', args: ["mcp-server", "ü\n"], env: { CLIO_RELAY_HOME: "/x y" } };
  const read = Bun.TOML.parse(configurationOf("codex", started)) as { mcp_servers: Record<string, unknown> };
  expect(read.mcp_servers["clio-relay"]).toEqual(started);
  for (const client of ["claude", "cursor", "gemini", "windsurf"] as const) {
    expect(JSON.parse(configurationOf(client, started))).toEqual({ mcpServers: { "clio-relay": started } });
  }
  const { command, args, env } = started;
  expect(JSON.parse(configurationOf("opencode", started))).toEqual({
    mcp: { "clio-relay": { type: "local", command: [command, ...args], enabled: true, environment: env } },
  });
  expect(JSON.parse(configurationOf("vscode", started))).toEqual({ servers: { "clio-relay": { type: "stdio", ...started } } });
});

test("what is in a file is replaced only when that is said; its own words, and nothing, always", async () => {
  await using relay = await initialized();
  const file = path.join(relay.directory, "servers");
  const write = (client: string, ...more: string[]) => relay.run(["agent", "render-mcp-config", "--client", client, "-o", file, ...more]);
  for (const [client, others] of [
    ["codex", ['model = "x"', '[mcp_servers.other]\ncommand = "x"']],
    ["claude", ['{"mcpServers":{"other":{}}}', '{"mcpServers":{"clio-relay":{}},"theme":"dark"}', "{ // mine\n}", "[]"]],
    ["vscode", ['{"servers":{"other":{}}}']],
    ["opencode", ['{"$schema":"x","mcp":{}}']],
  ] as const) {
    for (const other of others) {
      fs.writeFileSync(file, other);
      const refused = await write(client, "--json");
      expect([other, refused.code, JSON.parse(refused.stderr)]).toMatchObject([
        other,
        7,
        { reason: "state_conflict", hint: expect.stringContaining("joined") },
      ]);
      expect(fs.readFileSync(file, "utf8")).toBe(other);
    }
    expect([client, (await write(client, "--overwrite")).code]).toEqual([client, 0]);
    const written = fs.readFileSync(file, "utf8");
    for (const own of [written, ""]) {
      fs.writeFileSync(file, own);
      expect([client, (await write(client)).code, fs.readFileSync(file, "utf8")]).toEqual([client, 0, written]);
    }
  }
});

test("the server that it names answers, and no secret is in it", async () => {
  const secret = "0123456789abcdef0123456789abcdef";
  await using relay = await initialized({
    ...{ CLIO_RELAY_API_TOKEN: secret, CLIO_RELAY_OUTBOUND_PROXY: `http://me:${secret}@proxy.example`, CLIO_RELAY_KEY: secret },
    CLIO_RELAY_JARVIS_MCP_COMMAND: JSON.stringify(["jarvis-mcp", secret]),
  });
  const file = path.join(relay.directory, "agent.json");
  expect(await relay.ok("agent", "render-mcp-config", "--client", "claude", "-o", file)).toBe(file);
  const nowhere = await relay.run(["agent", "render-mcp-config", "-o", "absent/agent.toml"]);
  expect([nowhere.code, nowhere.stderr]).toEqual([2, "error: -o absent/agent.toml: there is no directory absent [local_file_missing]\n"]);
  expect(await relay.ok("agent", "render-mcp-config", "-o", relay.directory)).toBe(path.join(relay.directory, "clio-relay.toml"));
  const text = fs.readFileSync(file, "utf8");
  expect(text).not.toContain(secret);
  expect(text).not.toContain("proxy.example");
  const open = await relay.run(["agent", "render-mcp-config"], { env: { CLIO_RELAY_OUTBOUND_PROXY: "http://proxy.example:3128" } });
  expect(open.stdout).toContain('CLIO_RELAY_OUTBOUND_PROXY = "http://proxy.example:3128"');
  const { mcpServers } = JSON.parse(text) as {
    mcpServers: Record<string, { command: string; args: string[]; env: Record<string, string> }>;
  };
  const { command, args, env } = mcpServers["clio-relay"]!;
  expect(env["CLIO_RELAY_HOME"]).toBe(relay.home);
  const handshake = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const child = Bun.spawn([command, ...args], {
    env: { PATH: relay.environment["PATH"]!, HOME: relay.environment["HOME"]!, ...env },
    stdin: new TextEncoder().encode(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: handshake })}\n`),
    stdout: "pipe",
    stderr: "inherit",
  });
  expect(JSON.parse(await child.stdout.text())).toMatchObject({ id: 1, result: { serverInfo: { name: "clio-relay" } } });
  expect(await child.exited).toBe(0);
});
