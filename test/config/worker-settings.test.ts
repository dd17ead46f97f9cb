import { expect, test } from "bun:test";
import path from "node:path";
import { workerPrograms } from "../../src/config/worker-settings.ts";
import { environment } from "./environments.ts";

const NOTHING = { jarvis: "jarvis", agent: { program: null, adapter: "exec", args: [] } } as const;

test("an entry wins over config.toml, and the worker's environment over both", () => {
  const file = { jarvis_bin: "/file/jarvis", agent_bin: "/file/agent" };
  expect(workerPrograms(environment(), {}, {})).toEqual(NOTHING);
  expect(workerPrograms(environment(), file, {})).toMatchObject({ jarvis: "/file/jarvis", agent: { program: "/file/agent" } });
  const programs = {
    jarvis_bin: "/entry/jarvis",
    agent_bin: "/entry/agent",
    agent_adapter: "codex" as const,
    agent_args: ["a", ["--model", "{model}"]],
  };
  expect(workerPrograms(environment(), file, programs)).toEqual({
    jarvis: "/entry/jarvis",
    agent: { program: "/entry/agent", adapter: "codex", args: ["a", ["--model", "{model}"]] },
  });
  const env = environment({ CLIO_RELAY_JARVIS_BIN: "/env/jarvis", CLIO_RELAY_AGENT_ADAPTER: "generic" });
  expect(workerPrograms(env, file, programs)).toMatchObject({
    jarvis: "/env/jarvis",
    agent: { program: "/entry/agent", adapter: "generic" },
  });
});

test("an agent of the entry has nothing of the file's; a path below ~/ is one of the worker's user", () => {
  const file = { agent_bin: "/file/agent", agent_adapter: "codex", agent_args: '["--of-the-other"]' };
  const env = environment();
  expect(workerPrograms(env, file, { agent_bin: "~/bin/agent", jarvis_bin: "~/jarvis/bin/jarvis" })).toEqual({
    jarvis: path.join(env.home, "jarvis/bin/jarvis"),
    agent: { program: path.join(env.home, "bin/agent"), adapter: "exec", args: [] },
  });
});

test("what config.toml has in a wrong form is refused also where the entry says otherwise of something else", () => {
  expect(() => workerPrograms(environment(), { agent_bin: "not a program" }, { jarvis_bin: "/entry/jarvis" })).toThrow(
    expect.objectContaining({ code: "configuration_error" }),
  );
});

test("the MCP server of JARVIS-CD is a command, of the file or of the environment", () => {
  const of = (variables: Record<string, string>, file: Record<string, string | string[]> = {}) =>
    workerPrograms(environment(variables), file, {}).jarvisMcp;
  expect(of({})).toBeUndefined();
  expect(of({}, { jarvis_mcp_command: ["/opt/jarvis-mcp", "--stdio"] })).toEqual(["/opt/jarvis-mcp", "--stdio"]);
  expect(of({ CLIO_RELAY_JARVIS_MCP_COMMAND: '["jarvis-mcp"]' }, { jarvis_mcp_command: ["/opt/x"] })).toEqual(["jarvis-mcp"]);
  for (const wrong of ["jarvis-mcp", "[]", '[""]', '["a", ["b"]]', '["a", 1]', '["a\\u0000"]'])
    expect(() => of({ CLIO_RELAY_JARVIS_MCP_COMMAND: wrong })).toThrow("JARVIS_MCP_COMMAND");
});
