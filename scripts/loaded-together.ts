import fs from "node:fs";
import path from "node:path";

/** What commands need before they do anything, with all that these import. Relative to the sources. */
const COMMAND = ["cli/main.ts", "cli/job/status.ts"];
/** What an answer is checked with. */
const ANSWERS = ["api/answers.ts", "api/client/checked-answer.ts"];

/** Programs that are to stay small; they get what they import and no more. */
const SMALL = ["main.ts", "execution/shim/main.ts", "transport/ssh/openssh/askpass-program.ts", "cli/complete/main.ts"];

/**
 * Has modules that are needed together put into one chunk. Bun makes a chunk of the modules that the same set of entries reaches, and every dynamic import is an
 * entry, so that what a command needs would be spread over dozens; each takes 0.1 to 0.2 ms to load. Where every entry imports all of a group, the sets are the same.
 *
 * @param source the directory of the sources
 */
export function loadedTogether(source: string): Bun.BunPlugin {
  return {
    name: "what is loaded together",
    setup(builder) {
      const modules = new Modules(source);
      const small = modules.closure(SMALL);
      const command = modules.closure(COMMAND);
      const answers = withoutSome(modules.closure(ANSWERS), command);
      builder.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
        if (!modules.entries.has(file) || small.has(file)) return undefined;
        // Nothing of a group may import the group: that would be a circle.
        const added = command.has(file) ? [] : [...withoutSome(command, modules.entries)];
        const own = modules.closure([path.relative(source, file)]);
        if (!command.has(file) && !answers.has(file) && [...answers].some((one) => own.has(one))) added.push(...answers);
        // The bytes must not depend on where the project lies.
        const imports = added.map((one) => `import ${JSON.stringify(`./${path.relative(path.dirname(file), one)}`)};`).join("");
        return { loader: "ts", contents: imports + fs.readFileSync(file, "utf8") };
      });
    },
  };
}

const withoutSome = (files: ReadonlySet<string>, others: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...files].filter((file) => !others.has(file)));

/** The modules of a directory and what they import of each other. */
class Modules {
  readonly #scanner = new Bun.Transpiler({ loader: "ts" });
  readonly #imports = new Map<string, ReturnType<Bun.Transpiler["scanImports"]>>();
  /** Modules that are loaded later by some other. */
  readonly entries: ReadonlySet<string>;

  constructor(private readonly source: string) {
    const files = [...new Bun.Glob("**/*.ts").scanSync({ cwd: source, absolute: true })].sort();
    this.entries = new Set(files.flatMap((file) => this.#importsOf(file, "dynamic-import")));
  }

  /** Those of these modules that there are, and all that they import, in the order of imports. */
  closure(files: readonly string[]): ReadonlySet<string> {
    const seen = new Set<string>();
    const add = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const one of this.#importsOf(file, "import-statement")) add(one);
    };
    for (const file of files.map((one) => path.join(this.source, one))) if (fs.existsSync(file)) add(file);
    return seen;
  }

  #importsOf(file: string, kind: "dynamic-import" | "import-statement"): string[] {
    let imports = this.#imports.get(file);
    if (imports === undefined) {
      imports = this.#scanner.scanImports(fs.readFileSync(file, "utf8"));
      this.#imports.set(file, imports);
    }
    return imports
      .filter((one) => one.kind === kind && one.path.startsWith(".") && one.path.endsWith(".ts"))
      .map((one) => path.resolve(path.dirname(file), one.path));
  }
}
