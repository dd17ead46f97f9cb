import { RelayError } from "../domain/errors.ts";
import { CALL, CALL_DETAILS, submitCall } from "./mcp-call-options.ts";
import { assignment, text } from "./values.ts";
import { defineVerb, list, required } from "./verb.ts";

export const verb = defineVerb({
  summary: "Call an MCP server on a cluster once",
  details: `Starts the server there as a job, asks it for one thing, and ends it. Nothing has to be registered for it.\n\n${CALL_DETAILS}`,
  positionals: {},
  flags: {
    server: required(text("PROGRAM"), "Its program, as the cluster finds it; no shell reads it"),
    "server-arg": list(text("ARGUMENT"), "An argument of it"),
    "env-from": list(assignment("CHILD=SOURCE"), "A variable of it, and the worker's whose value it gets; names only"),
    ...CALL,
  },
  examples: [
    ["mcp-call --cluster c --server science-mcp --operation tools/list --wait", "which tools it has"],
    [
      `mcp-call --cluster c --server science-mcp --tool inspect_dataset --arguments-json '{"path": "/data/a"}' --wait`,
      "call one, and wait for its answer",
    ],
  ],
  async run(call) {
    const { server, "server-arg": server_args, "env-from": variables } = call.flags;
    const env_from = Object.fromEntries(variables);
    if (Object.keys(env_from).length < variables.length) throw new RelayError("usage", "--env-from names a variable twice");
    return submitCall(call, () => ({ server, server_args, env_from }));
  },
});
