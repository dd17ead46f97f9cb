import { expect, test } from "bun:test";
import { codexServers } from "../../../src/execution/agent/codex-servers.ts";

const OF_THE_JOB = '"CLIO_RELAY_JOB_ID", "CLIO_RELAY_CLUSTER", "CLIO_RELAY_ATTEMPT", "CLIO_RELAY_EVENTS"';

test("servers are options in TOML, and find the job by its variables", () => {
  const text = `[mcp_servers.clio-relay]
command = "/bin/clio-relay"
args = ["mcp-server", "a \\"b\\""]
startup_timeout_sec = 20
enabled = true
env_vars = ["LANG"]
[mcp_servers.clio-relay.env]
CLIO_RELAY_HOME = "/home/me/relay"
[mcp_servers.far]
url = "https://mcp.example/mcp"
bearer_token_env_var = "FAR_TOKEN"
`;
  const options = codexServers(text);
  expect(options.filter((one) => one === "-c")).toHaveLength(options.length / 2);
  expect(options.filter((one) => one !== "-c")).toEqual([
    'mcp_servers.clio-relay.command="/bin/clio-relay"',
    'mcp_servers.clio-relay.args=["mcp-server", "a \\"b\\""]',
    "mcp_servers.clio-relay.startup_timeout_sec=20",
    "mcp_servers.clio-relay.enabled=true",
    `mcp_servers.clio-relay.env_vars=["LANG", ${OF_THE_JOB}]`,
    'mcp_servers.clio-relay.env.CLIO_RELAY_HOME="/home/me/relay"',
    'mcp_servers.far.url="https://mcp.example/mcp"',
    'mcp_servers.far.bearer_token_env_var="FAR_TOKEN"',
  ]);
  expect(codexServers("")).toEqual([]);
});

test.each([
  ["[mcp_servers", "no TOML"],
  ['model = "x"', '"model"'],
  ["mcp_servers = 5", "tables"],
  ["[mcp_servers]\na = 5", "mcp_servers.a is no table"],
  ['[mcp_servers."a.b"]\ncommand = "x"', "name"],
  ['[mcp_servers.a]\nhttp_headers = { Authorization = "geheim" }', '"http_headers"'],
  ['[mcp_servers.a.env]\nAPI_KEY = "geheim"', '"API_KEY"'],
  ['[mcp_servers.a.env]\nCLIO_RELAY_API_TOKEN = "geheim"', '"CLIO_RELAY_API_TOKEN"'],
  ['[mcp_servers.a.env]\nCLIO_RELAY_OUTBOUND_PROXY = "http://me:geheim@proxy.example"', '"CLIO_RELAY_OUTBOUND_PROXY"'],
  ['[mcp_servers.a.env]\nCLIO_RELAY_PASSWORD = "geheim"', '"CLIO_RELAY_PASSWORD"'],
  ['[mcp_servers.a.env]\nCLIO_RELAY_HOME = ["geheim"]', '"CLIO_RELAY_HOME"'],
  ['[mcp_servers.a]\ncommand = "x"\nenv_vars = "LANG"', "env_vars"],
  ['[mcp_servers.a]\ncommand = { x = "geheim" }', "neither text"],
  [Array.from({ length: 65 }, (_, at) => `[mcp_servers.s${at}]\ncommand = "x"`).join("\n"), "at most 64"],
])("%j is refused, and nothing of it is repeated that may be a secret", (text, why) => {
  let failure: unknown;
  try {
    codexServers(text);
  } catch (error) {
    failure = error;
  }
  expect((failure as Error).message).toContain(why);
  expect((failure as Error).message).not.toContain("geheim");
});
