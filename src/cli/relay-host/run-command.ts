/** Run a command of this machine, without input. Both of its outputs are one text, 64 KiB at most. */
export async function runCommand(command: readonly string[]): Promise<{ code: number; text: string }> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, text: `${err}${out}`.slice(0, 64 * 1024) };
}
