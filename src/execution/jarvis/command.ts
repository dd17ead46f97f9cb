/** A command that is run beside the worker; see `RunSiteCommand`, which does that. */
export interface Command {
  readonly argv: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly deadlineMs: number;
}

export type CommandEnd =
  | { readonly kind: "ended"; readonly code: number; readonly stdout: string; readonly stderr: string; readonly cut: boolean }
  | {
      readonly kind: "killed";
      readonly by: "deadline" | "somebody";
      readonly stdout: string;
      readonly stderr: string;
      readonly cut: boolean;
    }
  | { readonly kind: "missing"; readonly program: string };

/** Runs a command to its end or its deadline, and never rejects. */
export type RunCommand = (command: Command) => Promise<CommandEnd>;

/** What a command said last, on one line. */
export function lastLine(end: CommandEnd): string {
  if (end.kind === "missing") return `there is no ${end.program}`;
  const lines = `${end.stdout}\n${end.stderr}`.split("\n").filter((line) => line.trim() !== "");
  const said = lines.at(-1)?.trim().slice(0, 1_000) ?? "it said nothing";
  return end.kind === "ended" ? said : `it did not end within its time; ${said}`;
}
