import fs from "node:fs";
import path from "node:path";

/** Every file of the project that is or would be committed, as paths below the root. */
export function projectFiles(root: string): string[] {
  const listed = Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root, stderr: "ignore" });
  const files = listed.success
    ? listed.stdout.toString().split("\0")
    : [...new Bun.Glob("**/*").scanSync({ cwd: root, dot: true })].filter((file) => !/^(?:node_modules|dist|\.git)\//.test(file));
  return files.filter((file) => file !== "" && fs.existsSync(path.join(root, file))).sort();
}

/** Names of registries, put together here so that this file does not name them. */
const REGISTRIES = [
  ["npmjs", "org"],
  ["npmjs", "com"],
  ["yarnpkg", "com"],
  ["npm", "pkg", "github", "com"],
  ["npmmirror", "com"],
  ["pypi", "org"],
  ["pythonhosted", "org"],
  ["crates", "io"],
  ["deb", "debian", "org"],
].map((parts) => parts.join("."));

/** The registries that a text names. */
export const registriesNamed = (text: string): string[] => REGISTRIES.filter((host) => text.includes(host));
