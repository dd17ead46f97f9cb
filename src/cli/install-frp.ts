import fs from "node:fs";
import path from "node:path";
import { EXIT } from "../domain/errors.ts";
import { makePrivateDirectory, writeFileAtomic } from "../lib/files/atomic-file.ts";
import { installFrp } from "../transport/frp/install.ts";
import { ownPlatform } from "../transport/frp/programs.ts";
import { FRP_VERSION } from "../transport/frp/release.ts";

import { resolveLocal } from "./local-path.ts";
import { printJson } from "./print/table.ts";
import { type Reader, sha256, text } from "./values.ts";
import { defineVerb, option } from "./verb.ts";

const platform: Reader<string> = {
  label: "OS-ARCH",
  form: "a system and an architecture such as linux-amd64",
  read: (given) => (/^[a-z0-9]{1,16}[-_][a-z0-9]{1,16}$/.test(given) ? given.replace("-", "_") : undefined),
};

export const verb = defineVerb({
  summary: "Install frpc and frps for modes frp-stcp and frp-xtcp",
  details:
    `Release ${FRP_VERSION}, whose SHA-256 is known to this program for linux-amd64, linux-arm64, windows-amd64, darwin-amd64 and darwin-arm64. For other systems, --from with the --sha256 of an archive or of frpc ` +
    "itself. Bootstrap brings the frpc for a cluster from here: --platform linux-amd64, where this machine is another one.",
  positionals: {},
  flags: {
    platform: option(platform, "For which kind of machine; this one when it is not said"),
    from: option(text("FILE|URL"), "Where it is, in place of the release's own page"),
    sha256: option(sha256, "SHA-256 of that, or of the frpc in it"),
    destination: option(text("DIR"), "Put the programs there, too; nothing is fetched again for it"),
  },
  examples: [
    ["install-frp", "once on a desktop"],
    [
      "install-frp --from ./frp_0.69.1_linux_riscv64.tar.gz --platform linux-riscv64 --sha256 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      "from a file, with a digest from elsewhere",
    ],
  ],
  async run({ flags, io, json, relay }) {
    const stop = new AbortController();
    const off = io.onSignal("SIGINT", () => stop.abort());
    const from = flags.from === undefined ? null : /^https?:\/\//.test(flags.from) ? flags.from : resolveLocal(io, flags.from);
    try {
      const done = await installFrp({
        platform: flags.platform ?? ownPlatform(),
        from,
        sha256: flags.sha256 ?? null,
        directory: relay.paths.frpDir,
        fetch,
        signal: stop.signal,
      });
      const copies = flags.destination === undefined ? [] : copyTo(resolveLocal(io, flags.destination), done);
      if (json) await printJson(io.stdout, { ...done, copies });
      else {
        const [frpc = done.paths.frpc, frps = done.paths.frps] = copies;
        await io.stdout.write(`frpc=${frpc}\n${frps === null ? "" : `frps=${frps}\n`}`);
        const { what, sha256: digest, by } = done.verified;
        await io.stderr.write(
          `${done.state}: ${what} with SHA-256 ${digest} (${by === "pinned" ? "known to this program" : "as you gave it"})\n`,
        );
      }
    } finally {
      off();
    }
    return EXIT.ok;
  },
});

function copyTo(directory: string, { paths, platform: of }: { paths: { frpc: string; frps: string | null }; platform: string }): string[] {
  makePrivateDirectory(directory);
  const ending = of.startsWith("windows") ? ".exe" : "";
  return [paths.frpc, paths.frps].flatMap((file) => {
    if (file === null) return [];
    const target = path.join(directory, `${path.basename(file)}${ending}`);
    writeFileAtomic(target, fs.readFileSync(file), { mode: 0o755 });
    return [target];
  });
}
