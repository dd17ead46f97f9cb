import { describe, expect, test } from "bun:test";
import { type AgentConfiguration, agentArguments } from "../../../src/domain/agent.ts";
import { agentArgv, takesText } from "../../../src/execution/agent/command-line.ts";

const values = {
  prompt: "-p {model} $(id)",
  prompt_path: "/p.md",
  mcp_config_path: null,
  model: "small",
  output_path: "/out",
};
const run = (adapter: AgentConfiguration["adapter"], args: AgentConfiguration["args"], more = {}) =>
  agentArgv("/bin/agent", { adapter, args }, { ...values, ...more });

describe("the command line of an agent", () => {
  test("is the prompt alone where no arguments are configured", () => {
    expect(run("exec", [])).toEqual(["/bin/agent", values.prompt]);
    expect(run("generic", [])).toEqual(["/bin/agent", values.prompt]);
  });

  test("has every placeholder replaced, once", () => {
    expect(run("exec", ["--prompt={prompt}", "{prompt_path}{output_path}", "{other}", "{{model}}"])).toEqual([
      "/bin/agent",
      `--prompt=${values.prompt}`,
      "/p.md/out",
      "{other}",
      "{small}",
    ]);
  });

  test("leaves a group out where one of its placeholders has no value, and an argument empty", () => {
    const args = ["run", ["--model", "{model}"], ["--mcp", "{mcp_config_path}"], "{mcp_config_path}"];
    expect(run("generic", args)).toEqual(["/bin/agent", "run", "--model", "small", ""]);
    expect(run("generic", args, { mcp_config_path: "/m", model: null })).toEqual(["/bin/agent", "run", "--mcp", "/m", "/m"]);
  });

  test("of codex has its own options first, and the prompt behind -- unless an argument has it", () => {
    const own = ["/bin/agent", "exec", "--json", "--output-last-message", "/out"];
    expect(run("codex", ["--full-auto"])).toEqual([...own, "--model", "small", "--full-auto", "--", values.prompt]);
    expect(run("codex", ["{prompt_path}"], { model: null })).toEqual([...own, "/p.md"]);
  });

  test("is asked whether it has the text of the prompt", () => {
    const asked = (adapter: AgentConfiguration["adapter"], ...args: AgentConfiguration["args"]) => takesText({ adapter, args });
    expect([asked("exec"), asked("exec", "{prompt_path}"), asked("exec", ["-p", "{prompt}"])]).toEqual([true, false, true]);
    expect([asked("codex"), asked("codex", "{prompt_path}")]).toEqual([true, false]);
  });
});

test.each([
  ['["a", ["b", "c"]]', ["a", ["b", "c"]]],
  ["[]", []],
  ['"a"', null],
  ["[1]", null],
  ['[["a", ["b"]]]', null],
  ['["\\u0000"]', null],
  ["[", null],
])("%s as configured arguments", (text, expected) => expect(agentArguments(text)).toEqual(expected as never));
