import { readEnvironment } from "./config/environment.ts";
import { VERSION } from "./config/version.ts";
import { safeText } from "./lib/text/safe-text.ts";
import { systemClock } from "./lib/waiting/clock.ts";

/** Each branch loads only what it needs: a shim is to stay small, and a command is to start at once. */
async function main(argv: readonly string[]): Promise<number> {
  if (argv[0] === "__shim") {
    const { runShim } = await import("./execution/shim/main.ts");
    return await runShim(argv.slice(1), { version: VERSION, clock: systemClock, stdin: 0, environment: readEnvironment().variables });
  }
  if (argv[0] === "__mcp-call") {
    const { runMcpCall } = await import("./execution/mcp-call/main.ts");
    const environment = readEnvironment().variables;
    return await runMcpCall(argv.slice(1), { version: VERSION, environment, workdir: process.cwd() });
  }
  if (argv[0] === "__mcp-pool") {
    const { runMcpPool } = await import("./execution/mcp-call/pool.ts");
    return await runMcpPool(argv.slice(1), { version: VERSION, clock: systemClock, stdin: Bun.stdin.stream() });
  }
  if (argv[0] === "__askpass") {
    const { runAskpass } = await import("./transport/ssh/openssh/askpass-program.ts");
    return await runAskpass(argv.slice(1));
  }
  if (argv[0] === "__complete") {
    const { runComplete } = await import("./cli/complete/main.ts");
    return await runComplete(argv.slice(1));
  }
  if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
    // The first use of process.stdout would take longer than everything else here.
    await Bun.write(Bun.stdout, `${VERSION}\n`);
    return 0;
  }
  const { runCli } = await import("./cli/main.ts");
  return await runCli(argv);
}

/** One line for what cannot be written or found; a fault of ours shows where. */
function lastWords(error: unknown): string {
  if (error instanceof Error && "code" in error) return `error: ${safeText(error.message)} [local_file_unusable]\n`;
  return `error: ${safeText(String(error instanceof Error ? (error.stack ?? error.message) : error).slice(0, 2_000))} [internal_error]\n`;
}

async function exitCode(argv: readonly string[]): Promise<number> {
  try {
    return await main(argv);
  } catch (error) {
    // The reader went away: there is nothing wrong.
    if (error instanceof Error && "code" in error && error.code === "EPIPE") return 0;
    // Standard error may be what is gone.
    await Bun.write(Bun.stderr, lastWords(error)).catch(() => undefined);
    return 1;
  }
}

process.exit(await exitCode(process.argv.slice(2)));
