import { EXIT } from "../../domain/errors.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { oneOf } from "../values.ts";
import { defineVerb, optionOr } from "../verb.ts";
import { noteHidden } from "./notices.ts";

export const verb = defineVerb({
  summary: "Show the tools of servers on clusters as agents are shown them now",
  details:
    "Reads what is registered and what the last refreshes found, as a running mcp-server does by itself, and asks no cluster. What is registered and not shown is on standard error, with the reason.",
  positionals: {},
  flags: { profile: optionOr(oneOf("user", "admin", "operator"), "user", "Whose tools") },
  examples: [["remote-mcp reload --profile admin", "all that there is"]],
  async run({ flags, io, json, relay }) {
    const { catalogueView } = await import("./catalogue-view.ts");
    const profile = flags.profile === "user" ? "user" : "admin";
    const view = catalogueView(await relay.clusters(), profile, { paths: relay.paths, env: io.env, now: () => io.clock.now() });
    if (json) {
      await printJson(io.stdout, { ...view, remote_discovery_performed: false });
      return EXIT.ok;
    }
    await printTable(
      io.stdout,
      styleFor(io.stdout, io.env),
      ["TOOL", "ON", "THERE"],
      view.tools.map(({ name, server_tool, routes }) => [name, routes.map(({ cluster }) => cluster).join(","), server_tool]),
    );
    const hidden = view.issues.map(({ cluster, server, tool, message }) => {
      const what = [cluster, server, tool].filter((part) => part !== null).join(" ");
      return `${what === "" ? "" : `${what}: `}${message}`;
    });
    await noteHidden(io, hidden, "--json");
    return EXIT.ok;
  },
});
