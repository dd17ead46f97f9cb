import path from "node:path";
import type { Source } from "./sources.ts";

/** A rule over modules. `check` returns one line for each place that breaks it. */
export interface Rule {
  readonly name: string;
  readonly why: string;
  readonly check: (sources: readonly Source[]) => string[];
}

/** From the bottom to the top; members of one row do not import each other. */
export const LAYERS: readonly (readonly string[])[] = [
  ["domain", "lib"],
  ["config"],
  ["queue", "execution", "scheduler", "transport"],
  ["api"],
  ["gateway", "mcp"],
  ["roles"],
  ["cli"],
  ["main.ts", "package.ts"],
];

const partOf = (file: string): string => file.split("/")[1] ?? "";
const rankOf = (part: string): number => LAYERS.findIndex((row) => row.includes(part));
const places = (sources: readonly Source[], allowed: (file: string) => boolean, pattern: RegExp): string[] =>
  sources.filter(({ file, code }) => !allowed(file) && pattern.test(code)).map(({ file }) => file);
const importers = (sources: readonly Source[], allowed: (file: string) => boolean, banned: (specifier: string) => boolean): string[] =>
  sources
    .filter(({ file }) => !allowed(file))
    .flatMap(({ file, imports }) =>
      imports.filter(({ specifier }) => banned(specifier)).map(({ specifier }) => `${file} imports ${specifier}`),
    );

const layers: Rule = {
  name: "imports point down only",
  why: "a part that knows only what lies below it can be understood, tested and replaced without the rest",
  check: (sources) =>
    sources.flatMap(({ file, imports }) => {
      const from = partOf(file);
      if (rankOf(from) < 0) return [`${file}: src/${from} is in no layer (add it to LAYERS and docs/architecture.md)`];
      return imports.flatMap(({ target }) => {
        if (target === null || !target.startsWith("src/")) return [];
        const to = partOf(target);
        return from === to || rankOf(to) < rankOf(from) ? [] : [`${file} imports ${target}`];
      });
    }),
};

const domain: Rule = {
  name: "domain imports valibot and nothing else",
  why: "records and rules must mean the same in every process, on every platform, and in a page",
  check: (sources) =>
    sources
      .filter(({ file }) => partOf(file) === "domain")
      .flatMap(({ file, imports }) =>
        imports
          .filter(({ specifier, target }) => specifier !== "valibot" && !(target?.startsWith("src/domain/") ?? false))
          .map(({ specifier }) => `${file} imports ${specifier}`),
      ),
};

const environment: Rule = {
  name: "only config reads the environment",
  why: "a setting has one name, one default and one order of sources, and no other way to get in",
  check: (sources) => [
    ...places(
      sources,
      (file) => partOf(file) === "config",
      /\b(?:process|Bun|import\.meta)\s*(?:\.\s*env\b|\[\s*["']env["'])|\{[^{}]*\benv\b[^{}]*\}\s*=\s*(?:process|Bun)\b/,
    ),
    ...sources
      .filter(
        ({ file, code }) => partOf(file) !== "config" && /\{[^{}]*\benv\b[^{}]*\}\s*from\s*["'](?:node:process|process|bun)["']/.test(code),
      )
      .map(({ file }) => file),
  ],
};

const sqlite: Rule = {
  name: "only queue imports bun:sqlite",
  why: "one module owns the database file; whoever opens it besides breaks its locks and its transactions",
  check: (sources) =>
    importers(
      sources,
      (file) => partOf(file) === "queue",
      (specifier) => /^(?:bun|node):sqlite$/.test(specifier),
    ),
};

const ssh2: Rule = {
  name: "only transport/session imports ssh2",
  why: "one factory makes its clients and servers, and none without a verifier: left alone, ssh2 takes any host key, and a Promise for a yes",
  check: (sources) =>
    importers(
      sources,
      (file) => file.startsWith("src/transport/session/"),
      (specifier) => /^ssh2(?:\/|$)/.test(specifier),
    ),
};

const OPENS =
  /\b(?:net|tls)\s*\.\s*(?:connect|createConnection)\s*\((?!\s*\{\s*(?:path|socket)\b)|\bBun\s*\.\s*connect\s*\((?!\s*\{\s*unix\b)|\{[^{}]*\b(?:connect|createConnection)\b[^{}]*\}\s*from\s*["'](?:node:)?(?:net|tls)["']/;

const dial: Rule = {
  name: "only dial opens connections",
  why: "each one may ask a person for a code: what is not counted, and what would ask and is not attended, must not be able to happen. Sockets of this machine are none, and TLS on a socket that is there is none",
  check: (sources) => [
    ...places(sources, (file) => file === "src/transport/dial-tcp.ts", OPENS),
    ...places(sources, (file) => file === "src/transport/dial.ts", /\bnew\s+ProcessStream\b/),
    ...sources
      .filter(({ file }) => file !== "src/transport/dial.ts")
      .flatMap(({ file, imports }) =>
        imports
          .filter(({ target, typeOnly }) => target === "src/transport/dial-tcp.ts" && !typeOnly)
          .map(({ target }) => `${file} imports ${target}`),
      ),
  ],
};

const exit: Rule = {
  name: "only main.ts ends the process",
  why: "an exit inside skips the close of databases, the flush of output and the answer of others' requests",
  check: (sources) =>
    places(
      sources,
      (file) => file === "src/main.ts",
      /\bprocess\s*\.\s*(?:exit|abort|reallyExit)\b|\{[^{}]*\bexit\b[^{}]*\}\s*from\s*["'](?:node:)?process["']/,
    ),
};

const SHIM = "src/execution/shim/";
/** What the shim may load besides its own modules and lib. */
const SHIM_ALSO: readonly string[] = [
  // the shapes of the files that it shares with the worker
  "src/execution/spool-records.ts",
  // finding and ending a job's processes, which the worker does where the shim is gone
  "src/execution/cgroup.ts",
  "src/execution/end-processes.ts",
  "src/execution/process-table.ts",
  "src/execution/processes.ts",
  "src/execution/workdir.ts",
];

const shim: Rule = {
  name: "the shim loads little",
  why: "there is one per running job, and it outlives the worker: each module it loads is memory for every job and one more way to fail",
  check: (sources) => {
    const byFile = new Map(sources.map((source) => [source.file, source]));
    const found: string[] = [];
    const seen = new Set<string>();
    const visit = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const { specifier, target, typeOnly } of byFile.get(file)?.imports ?? []) {
        if (typeOnly) continue;
        if (target !== null) {
          if (target.startsWith(SHIM) || target.startsWith("src/lib/") || SHIM_ALSO.includes(target)) visit(target);
          else found.push(`${file} imports ${target}`);
        } else if (!/^(?:node|bun):/.test(specifier)) found.push(`${file} imports the package ${specifier}`);
      }
    };
    visit(`${SHIM}main.ts`);
    return found;
  },
};

const client: Rule = {
  name: "the CLI goes through the client",
  why: "a rule enforced in the HTTP app holds on every surface only if no surface has a way around it",
  check: (sources) =>
    sources
      .filter(({ file }) => partOf(file) === "cli")
      .flatMap(({ file, imports }) =>
        imports.flatMap(({ target }) => {
          const to = target === null ? "" : partOf(target);
          // `emit` runs inside a job and writes the job's event file; no daemon is in reach there.
          const allowed = to === "execution" && /^src\/cli\/emit(?:\/|\.ts$)/.test(file);
          return (to === "queue" || to === "execution") && !allowed ? [`${file} imports ${target}`] : [];
        }),
      ),
};

const barrels: Rule = {
  name: "no module passes on another's exports",
  why: "an import should name the file that it means; a barrel loads all of its files for one of them, and hides cycles",
  check: (sources) =>
    // What other programs import is one module, and all that they are to know.
    sources
      .filter(({ file }) => file !== "src/package.ts")
      .flatMap(({ file, imports }) => [
        ...(path.posix.basename(file) === "index.ts" ? [`${file} is named index.ts`] : []),
        ...imports.filter(({ reExport }) => reExport).map(({ specifier }) => `${file} re-exports ${specifier}`),
      ]),
};

const NAMELESS = /^(?:utils?|helpers?|core|support|common|misc|shared|stuff)(?:\.|$)/;

const names: Rule = {
  name: "a name says what is inside",
  why: "a file that could hold anything will",
  check: (sources) => sources.filter(({ file }) => file.split("/").some((part) => NAMELESS.test(part))).map(({ file }) => file),
};

const patching: Rule = {
  name: "no test patches a module",
  why: "a clock, a spawn or a dial that a test needs to replace is an argument; patched modules leak into the tests that follow",
  check: (sources) => places(sources, (file) => !file.endsWith(".test.ts"), /\bmock\s*\.\s*module\b|\bspyOn\b/),
};

const cycles: Rule = {
  name: "no import cycles",
  why: "modules of a cycle can only be understood, loaded and tested all together",
  check: (sources) => {
    const byFile = new Map(sources.map((source) => [source.file, source]));
    const done = new Set<string>();
    const found: string[] = [];
    const visit = (file: string, trail: readonly string[]): void => {
      const start = trail.indexOf(file);
      if (start >= 0) found.push([...trail.slice(start), file].join(" -> "));
      if (start >= 0 || done.has(file)) return;
      for (const { target } of byFile.get(file)?.imports ?? []) if (target !== null) visit(target, [...trail, file]);
      done.add(file);
    };
    for (const { file } of sources) visit(file, []);
    return found;
  },
};

/** The way out itself; what a process prints for another program, or before there is a command line. */
const PRINTERS = new Set(["src/cli/io.ts", "src/cli/complete/main.ts", "src/main.ts", "src/transport/ssh/openssh/askpass-program.ts"]);

const printing: Rule = {
  name: "only cli/io.ts writes to standard output and error",
  why: "what comes from elsewhere passes there, so that no terminal obeys it",
  check: (sources) =>
    places(
      sources,
      (file) => PRINTERS.has(file),
      /\bprocess\s*\.\s*std(?:out|err)\s*\.\s*write\b|\bBun\s*\.\s*std(?:out|err)\b|\bconsole\s*\.\s*\w+\s*\(|\bwriteSync\s*\(\s*[12]\b/,
    ),
};

export const RULES = {
  layers,
  domain,
  environment,
  sqlite,
  ssh2,
  dial,
  exit,
  shim,
  client,
  barrels,
  names,
  patching,
  cycles,
  printing,
} as const satisfies Record<string, Rule>;
