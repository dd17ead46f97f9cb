import fs from "node:fs";
import path from "node:path";

/**
 * The installer of a release: scripts/release/install.sh with the scripts that it includes, in one file.
 *
 * @param version what it installs when nobody names a version
 * @param releasesUrl the page below which `download/vVERSION/` has the files; without it whoever runs the installer says where they are
 */
export function installerScript(root: string, version: string, releasesUrl?: string): string {
  const source = fs.readFileSync(path.join(root, "scripts/release/install.sh"), "utf8");
  const whole = source.replace(/^# @include (\S+)$/gm, (_, file: string) => included(root, file));
  return set(set(whole, "RELEASED_VERSION", version), "RELEASES_URL", releasesUrl ?? "");
}

/** A script that the installer shares with bootstrap, so that both make the same layout; its `main` gets the script's name. */
function included(root: string, file: string): string {
  const name = path.basename(file, ".sh");
  return fs
    .readFileSync(path.join(root, file), "utf8")
    .replace(/^main\(\)/m, `${name}_main()`)
    .trimEnd();
}

function set(script: string, name: string, value: string): string {
  if (!/^[\w.:/+-]*$/.test(value)) throw new Error(`${JSON.stringify(value)} is no value for ${name} of install.sh`);
  const line = `\n${name}=''\n`;
  if (script.split(line).length !== 2) throw new Error(`install.sh has no line ${name}=''`);
  return script.replace(line, `\n${name}='${value}'\n`);
}
