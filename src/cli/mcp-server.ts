import { EXIT } from "../domain/errors.ts";
import type { LocalFiles } from "../mcp/local-files.ts";
import type { Installation } from "./installation.ts";
import type { CliIo } from "./io.ts";
import { surroundingJob } from "./job/surrounding-job.ts";
import { oneOf, type Reader, text, whole } from "./values.ts";
import { defineVerb, optionOr } from "./verb.ts";

const MCP_PORT = 8_766;
/** Other names of profiles. */
const PROFILES = { user: "user", agent: "user", admin: "admin", operator: "admin", all: "admin" } as const;

const urlPath: Reader<string> = {
  label: "PATH",
  form: "a path of a URL: / and letters, digits, - _ . /",
  read: (given) => (/^\/[A-Za-z0-9._/-]{0,255}$/.test(given) ? given : undefined),
};

/** Whoever comes over HTTP was not started in a directory of its own. */
function filesOf({ settings }: Installation, { env }: CliIo, transport: string): LocalFiles | null {
  const root = settings.input_workspace_root ?? (transport === "stdio" ? env.cwd : null);
  return root === null ? null : { ...settings, root, platform: env.platform };
}

export const verb = defineVerb({
  summary: "Serve the clusters to an agent, by MCP",
  details:
    "One endpoint for every cluster, on standard input and output, or over HTTP with the token that CLIO_RELAY_API_TOKEN holds. The profile `user` has what an agent needs; `admin` has every tool. It ends with its input, or on TERM; jobs go on.",
  positionals: {},
  flags: {
    profile: optionOr(oneOf("user", "agent", "admin", "operator", "all"), "user", "Which tools there are"),
    transport: optionOr(oneOf("stdio", "http"), "stdio", "How it is spoken to"),
    host: optionOr(text("HOST"), "127.0.0.1", "Address to listen on, of loopback"),
    port: optionOr(whole(0, 65_535), MCP_PORT, "Port to listen on; 0 for one that is free"),
    path: optionOr(urlPath, "/mcp", "Where it is on the server"),
  },
  examples: [
    ["mcp-server", "for a client that starts it"],
    ["mcp-server --transport http --port 8766", "for clients that come over HTTP, with the token of CLIO_RELAY_API_TOKEN"],
  ],
  async run({ flags, io, relay }) {
    const profile = PROFILES[flags.profile as keyof typeof PROFILES];
    const stop = new AbortController();
    const off = (["SIGTERM", "SIGINT", "SIGHUP"] as const).map((signal) => io.onSignal(signal, () => stop.abort()));
    try {
      const { McpService } = await import("../mcp/service.ts");
      const { cacheFile } = await import("../mcp/federation/catalogue.ts");
      const { VERSION } = await import("../config/version.ts");
      const service = new McpService({
        desktop: relay.desktop,
        profile,
        version: VERSION,
        origin: (cluster) => surroundingJob(io, cluster),
        now: () => io.clock.monotonic(),
        wallClock: () => io.clock.now(),
        remote: cacheFile(relay.paths, io.env),
        files: filesOf(relay, io, flags.transport),
        onFault: (error) => io.stderr.log(`warn: ${error.message}\n`, (count) => `warn: ${count} lines are left out\n`),
      });
      if (flags.transport === "http") {
        const { serveMcpOverHttp } = await import("../roles/mcp/serve-http.ts");
        const place = { host: flags.host, port: flags.port, path: flags.path };
        const onListening = (url: string) => io.stderr.write(`notice: agents are served on ${url}\n`);
        await serveMcpOverHttp({ service, paths: relay.paths, env: io.env, clock: io.clock, ...place, onListening }, stop.signal);
        return EXIT.ok;
      }
      const { serveOnStdio } = await import("../mcp/stdio/serve.ts");
      await serveOnStdio(
        service,
        { input: io.stdin.bytes(), write: (text) => io.stdout.writeAside(text) },
        relay.paths.clustersFile,
        stop.signal,
      );
      return EXIT.ok;
    } finally {
      for (const remove of off) remove();
    }
  },
});
