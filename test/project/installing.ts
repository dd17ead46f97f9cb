import fs from "node:fs";
import path from "node:path";
import { installerScript } from "../../scripts/release/installer.ts";
import { sha256Hex } from "../../src/lib/digest.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));

const cpuinfo = fs.existsSync("/proc/cpuinfo") ? fs.readFileSync("/proc/cpuinfo", "utf8") : "";
const lacksAvx2 = process.arch === "x64" && !/^flags.*\bavx2\b/m.test(cpuinfo);

/** The file that the installer asks for on this machine. */
export const HOST_FILE = `clio-relay-linux-${process.arch}${lacksAvx2 ? "-baseline" : ""}`;

/** A program that stands for the executable: it knows its version and is small. */
export const program = (version: string): string => `#!/bin/sh\n[ "$1" = --version ] && echo ${version}\n`;

/** Lines of SHA256SUMS. */
export const sumsOf = (files: Readonly<Record<string, string | Uint8Array>>): string =>
  Object.entries(files)
    .map(([name, content]) => `${sha256Hex(content)}  ${name}\n`)
    .join("");

export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** The shell and its options. */
  readonly shell?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The text of the installer; the shell reads it from its standard input, as behind `curl … |`. */
  readonly script?: string;
}

/** A user with a home, a page with releases on loopback, and the installer. */
export class Installing implements AsyncDisposable {
  readonly #directory = temporaryDirectory();
  readonly #server: Bun.Server<undefined>;
  /** What the page serves, by path. A function answers by itself. */
  readonly files = new Map<string, string | Uint8Array | (() => Response)>();
  /** Paths in the order in which they were asked for. */
  readonly requests: string[] = [];
  readonly script = installerScript(ROOT, "0.1.0");

  constructor() {
    fs.mkdirSync(this.home);
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      fetch: (request) => {
        const { pathname } = new URL(request.url);
        this.requests.push(pathname);
        const found = this.files.get(pathname);
        if (found === undefined) return new Response("not found", { status: 404 });
        return typeof found === "function" ? found() : new Response(found);
      },
    });
  }

  get directory(): string {
    return this.#directory.path;
  }

  get home(): string {
    return path.join(this.#directory.path, "home");
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** Everything that the installer has put below a prefix, as paths with what links lead to. */
  installed(prefix = path.join(this.home, ".local")): string[] {
    if (!fs.existsSync(prefix)) return [];
    return (
      fs
        .readdirSync(prefix, { recursive: true, encoding: "utf8" })
        .flatMap((name) => {
          const stat = fs.lstatSync(path.join(prefix, name));
          if (stat.isDirectory()) return [];
          return stat.isSymbolicLink() ? [`${name} -> ${fs.readlinkSync(path.join(prefix, name))}`] : [name];
        })
        // Links to directories are gone through, too.
        .filter((name) => !/^share\/clio-relay\/(?:current|previous)\/|\/journal\.jsonl$/.test(name))
        .sort()
    );
  }

  /** Publish a release at the root of the page. */
  publish(version: string, content: string = program(version)): string {
    const files = { [HOST_FILE]: content };
    this.files.set(`/${HOST_FILE}`, content);
    this.files.set("/SHA256SUMS", sumsOf(files));
    return sha256Hex(content);
  }

  /** Start the installer. */
  start({ shell = ["sh"], args = [], env = {}, script = this.script }: RunOptions = {}) {
    const whole: Record<string, string | undefined> = {
      PATH: process.env.PATH,
      HOME: this.home,
      TMPDIR: this.directory,
      CLIO_RELAY_BASE_URL: this.url,
      CLIO_RELAY_TEST_RUN: process.env["CLIO_RELAY_TEST_RUN"],
      ...env,
    };
    return Bun.spawn([...shell, "-s", "--", ...args], {
      env: whole,
      cwd: this.directory,
      stdin: new TextEncoder().encode(script),
      stdout: "pipe",
      stderr: "pipe",
      timeout: 60_000,
    });
  }

  async run(options: RunOptions = {}): Promise<Run> {
    const child = this.start(options);
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, stdout, stderr };
  }

  /** A directory for PATH that has the named programs of this machine, and some of the test's own, and no others. */
  tools(names: readonly string[], own: Readonly<Record<string, string>> = {}): string {
    const directory = fs.mkdtempSync(path.join(this.directory, "tools-"));
    for (const name of names) {
      const found = Bun.which(name);
      if (found === null) throw new Error(`${name} is not on this machine`);
      fs.symlinkSync(found, path.join(directory, name));
    }
    for (const [name, text] of Object.entries(own)) {
      fs.rmSync(path.join(directory, name), { force: true });
      fs.writeFileSync(path.join(directory, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    }
    return directory;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
    this.#directory[Symbol.dispose]();
  }
}

/** What the installer uses of a system besides the shell, a downloader and a program for digests. */
export const SYSTEM = [
  ..."sh awk basename cat chmod cp cut date dd df dirname du find getconf grep head id ldd ln ls mkdir mv od readlink rm rmdir sed".split(
    " ",
  ),
  ..."sleep sort sync tail timeout tr uname wc".split(" "),
];
