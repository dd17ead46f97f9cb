import fs from "node:fs";
import path from "node:path";

/** Put programs of a host's into a directory for its search path, each of which does what `first` says before it is itself. @param first shell text, for a program's name */
export function inFrontOf(bin: string, names: readonly string[], first: (name: string) => string): void {
  for (const name of names) fs.writeFileSync(path.join(bin, name), `#!/bin/sh\n${first(name)}exec /bin/${name} "$@"\n`, { mode: 0o755 });
}
