/** NodeJS.Platform, spelled out: the package's types need none of Node's. */
export type Platform = "aix" | "android" | "cygwin" | "darwin" | "freebsd" | "haiku" | "linux" | "netbsd" | "openbsd" | "sunos" | "win32";

/** What the process was given by its surroundings, read once. An empty variable counts as one that is not set. */
export interface Environment {
  /** Every variable as it came, for children and for the settings table. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The user's home directory, absolute. */
  readonly home: string;
  /** The user's number; -1 where the system has none (Windows). */
  readonly uid: number;
  readonly platform: Platform;
  /** Where the process was started, absolute. Belongs to the request, never to a daemon. */
  readonly cwd: string;
  /** The directory for temporary files that every user may write to. */
  readonly temporary: string;
}

/** Whether a worker can run on this system: what it does with processes and files is Linux's. */
export const mayHaveWorkers = (env: Pick<Environment, "platform">): boolean => env.platform === "linux";

/** The value of a variable; undefined where it is missing or empty. */
export const variable = (env: Pick<Environment, "variables">, name: string): string | undefined => {
  const value = env.variables[name];
  return value === "" ? undefined : value;
};

/** Read the environment of this process, or another one that a test or a caller hands over. */
export function readEnvironment(source: Readonly<Record<string, string | undefined>> = process.env, cwd?: string): Environment {
  const home = source["HOME"];
  return {
    variables: { ...source },
    // On Windows it is a path of some other world: of a shell that came from Unix.
    home: process.platform === "win32" || home === undefined || home === "" ? homeDirectory() : home,
    uid: process.getuid?.() ?? -1,
    platform: process.platform,
    cwd: cwd ?? currentDirectory(source),
    temporary: process.platform === "win32" ? process.getBuiltinModule("node:os").tmpdir() : "/tmp",
  };
}

/** The home directory that the system has on record. A user without an entry there (a container's) has none, and gets the root. */
function homeDirectory(): string {
  try {
    const home = process.getBuiltinModule("node:os").homedir();
    return home === "" ? "/" : home;
  } catch {
    return "/";
  }
}

/** The working directory; where it has been removed, the name that it had. */
function currentDirectory(source: Readonly<Record<string, string | undefined>>): string {
  try {
    return process.cwd();
  } catch {
    const named = source["PWD"];
    return named?.startsWith("/") ? named : "/";
  }
}
