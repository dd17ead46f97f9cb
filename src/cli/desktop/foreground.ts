import { withOutboundProxy } from "../../config/outbound-proxy.ts";
import { VERSION } from "../../config/version.ts";
import { EXIT, isRelayError } from "../../domain/errors.ts";
import { LogFile } from "../../roles/desktop/log-file.ts";
import { runDesktop } from "../../roles/desktop/run.ts";
import { omittedText } from "../../roles/log-line.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";

/** Run the daemon in this process until TERM, Ctrl-C or a request to stop. In the background, what it says goes to its log only. */
export async function runInForeground(io: CliIo, relay: Installation, background: boolean): Promise<number> {
  const file = new LogFile(relay.paths.desktopLog, io.clock);
  const stop = new AbortController();
  const off = [io.onSignal("SIGTERM", () => stop.abort()), io.onSignal("SIGINT", () => stop.abort())];
  try {
    await runDesktop(
      {
        paths: relay.paths,
        env: withOutboundProxy(io.env, relay.settings),
        listen: relay.listen,
        version: VERSION,
        clock: io.clock,
        self: io.self,
        caFile: relay.settings.ca_file,
        apiConnections: relay.settings.api_connections,
        log(level, message) {
          file.write(level, message);
          if (!background) io.stderr.log(`${level}: ${message}\n`, (count) => `warn: ${omittedText(count)}\n`);
        },
      },
      stop.signal,
    );
    return EXIT.ok;
  } catch (error) {
    // Whoever started this one finds the other.
    if (background && isRelayError(error, "already_running")) return EXIT.ok;
    throw error;
  } finally {
    for (const remove of off) remove();
  }
}
