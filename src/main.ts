import { VERSION } from "./config/version.ts";
import { systemClock } from "./lib/clock.ts";

/** Each branch loads only what it needs: a shim is to stay small, and a command is to start at once. */
async function main(argv: readonly string[]): Promise<number> {
  if (argv[0] === "__shim") {
    const { runShim } = await import("./execution/shim/main.ts");
    return await runShim(argv.slice(1), { version: VERSION, clock: systemClock, stdin: 0 });
  }
  if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
    // The first use of process.stdout would take longer than everything else here.
    await Bun.write(Bun.stdout, `${VERSION}\n`);
    return 0;
  }
  const { runCli } = await import("./cli/main.ts");
  return await runCli(argv);
}

process.exit(await main(process.argv.slice(2)));
