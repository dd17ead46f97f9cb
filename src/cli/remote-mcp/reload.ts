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
    const entries = await relay.clusters();
    const viewOf = (of: typeof profile) => catalogueView(entries, of, { paths: relay.paths, env: io.env, now: () => io.clock.now() });
    const view = viewOf(profile);
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
    const elsewhere = profile === "user" && view.tools.length === 0 ? viewOf("admin").tools.length : 0;
    if (elsewhere > 0)
      hidden.push(`the profile user is shown none; admin is shown ${elsewhere}: clio-relay remote-mcp reload --profile admin`);
    await noteHidden(io, hidden, "--json");
    return EXIT.ok;
  },
});
