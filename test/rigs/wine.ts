import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import type { CommandResult } from "../runner/relay.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

const CURSOR_FORWARD = new RegExp(`${"\\x1b"}\\[(\\d*)C`, "g");
const SEQUENCE = new RegExp(`${"\\x1b"}\\[[?\\d;]*[A-Za-z]`, "g");

const HANDS_MS = 1_000;

/** How long one command may take, its start included. */
const COMMAND_MS = 60_000;

/**
 * A Windows of one test's own, as far as Wine is one: the build for Windows starts there, keeps its files and locks, serves and connects on loopback.
 * Unix sockets do not exist. Paths of this machine are below `Z:`.
 */
export class Wine implements AsyncDisposable {
  readonly #directory = temporaryDirectory();
  #outputs = 0;

  /** The way that a program there calls a file of this machine. */
  static path(file: string): string {
    return `Z:${file.replaceAll("/", "\\")}`;
  }

  static start(): Wine {
    const wine = new Wine();
    const made = spawnSync("wineboot", ["-i"], { env: wine.#environment, stdio: "ignore", timeout: COMMAND_MS });
    if (made.status !== 0) throw new Error(`wineboot ended with ${made.status ?? made.signal ?? made.error?.message}`);
    // What Wine 8 lacks and Bun needs: a source of random bytes under its newer name.
    const system = path.join(wine.#prefix, "drive_c/windows/system32");
    fs.writeFileSync(
      path.join(system, "bcryptprimitives.dll"),
      forwardingLibrary("bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036"),
    );
    return wine;
  }

  get #prefix(): string {
    return path.join(this.#directory.path, "prefix");
  }

  /** A directory that is removed with this Windows. */
  get scratch(): string {
    return this.#directory.path;
  }

  get #environment(): Record<string, string> {
    const { PATH = "", CLIO_RELAY_TEST_RUN } = process.env;
    return {
      PATH,
      HOME: this.#directory.path,
      WINEPREFIX: this.#prefix,
      WINEDEBUG: "-all",
      // Neither .NET nor a browser is needed, and looking for them takes time.
      WINEDLLOVERRIDES: "mscoree,mshtml=",
      ...(CLIO_RELAY_TEST_RUN === undefined ? {} : { CLIO_RELAY_TEST_RUN }),
    };
  }

  /** Run a program to its end. Output goes through files: a pipe would stay open for as long as a daemon runs that the program started. */
  async run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CommandResult> {
    const [out, err] = ["out", "err"].map((name) => path.join(this.#directory.path, `${name}-${this.#outputs}`)) as [string, string];
    this.#outputs++;
    const child = Bun.spawn(["wine", program, ...args], {
      env: { ...this.#environment, ...env },
      cwd: this.#directory.path,
      stdin: "ignore",
      stdout: Bun.file(out),
      stderr: Bun.file(err),
      timeout: COMMAND_MS,
    });
    const code = await child.exited;
    const stdout = fs.readFileSync(out, "utf8");
    // Wine's own advice on its installation.
    const stderr = fs
      .readFileSync(err, "utf8")
      .replace(/^(?:it looks like wine32|multiarch needs|wine32 is missing|.*apt-get install wine32).*\n/gm, "");
    return { code, stdout, stderr, json: <T>() => JSON.parse(stdout) as T };
  }

  /** Start a program on a console of its own: what it shows, and keys for it. */
  onConsole(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    let shown = "";
    const decoder = new TextDecoder();
    const terminal = new Bun.Terminal({
      cols: 200,
      rows: 50,
      data(_terminal, bytes) {
        shown += decoder.decode(bytes, { stream: true });
      },
    });
    const child = Bun.spawn(["setsid", "--ctty", "--wait", "wine", program, ...args], {
      terminal,
      cwd: this.#directory.path,
      env: { ...this.#environment, LANG: "C.UTF-8", TERM: "xterm", ...env },
      timeout: COMMAND_MS,
    });
    return {
      // The console moves its cursor over blanks instead of writing them (ECMA-48, CUF); its other sequences show nothing.
      shown: () => shown.replace(CURSOR_FORWARD, (_, count: string) => " ".repeat(Number(count || 1))).replace(SEQUENCE, ""),
      /** Wine's console takes keys as such only while a program waits for one, which a person's hands leave time for. */
      async press(keys: string): Promise<void> {
        await Bun.sleep(HANDS_MS);
        terminal.write(keys);
      },
      ended: child.exited.finally(() => terminal.close()),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Ends every program of this Windows, and waits for the end of the server itself.
    for (const flag of ["-k", "-w"]) spawnSync("wineserver", [flag], { env: this.#environment, stdio: "ignore", timeout: COMMAND_MS });
    this.#directory[Symbol.dispose]();
  }
}

/** A DLL for x64 with one export, which is another DLL's (Microsoft's PE format: headers, and a section with the export directory). */
function forwardingLibrary(name: string, exported: string, target: string): Uint8Array {
  const [headers, section, base] = [0x200, 0x200, 0x1000];
  const image = Buffer.alloc(headers + section);
  image.write("MZ", 0);
  const coff = 0x44;
  image.writeUInt32LE(coff - 4, 0x3c);
  image.write("PE", coff - 4);
  image.writeUInt16LE(0x8664, coff); // x64
  image.writeUInt16LE(1, coff + 2); // sections
  image.writeUInt16LE(240, coff + 16); // size of the optional header
  image.writeUInt16LE(0x2022, coff + 18); // a DLL, executable, anywhere in the address space
  const optional = coff + 20;
  image.writeUInt16LE(0x20b, optional); // PE32+
  image.writeUInt32LE(section, optional + 8);
  image.writeBigUInt64LE(0x1_8000_0000n, optional + 24);
  image.writeUInt32LE(0x1000, optional + 32); // alignment in memory
  image.writeUInt32LE(0x200, optional + 36); // alignment in the file
  image.writeUInt16LE(6, optional + 40); // version of the system
  image.writeUInt16LE(6, optional + 48); // version of the subsystem
  image.writeUInt32LE(base + 0x1000, optional + 56); // size in memory
  image.writeUInt32LE(headers, optional + 60);
  image.writeUInt16LE(2, optional + 68); // subsystem
  image.writeUInt16LE(0x160, optional + 70);
  image.writeUInt32LE(16, optional + 108); // directories
  image.writeUInt32LE(base, optional + 112);
  image.writeUInt32LE(section, optional + 116);
  const header = optional + 240;
  image.write(".edata", header);
  image.writeUInt32LE(section, header + 8);
  image.writeUInt32LE(base, header + 12);
  image.writeUInt32LE(section, header + 16);
  image.writeUInt32LE(headers, header + 20);
  image.writeUInt32LE(0x4000_0040, header + 36); // readable data
  // The export directory, its three tables of one entry each, and the strings.
  const at = { functions: 40, names: 44, ordinals: 48, name: 0x40, exported: 0x80, target: 0xc0 };
  image.writeUInt32LE(base + at.name, headers + 12);
  image.writeUInt32LE(1, headers + 16);
  image.writeUInt32LE(1, headers + 20);
  image.writeUInt32LE(1, headers + 24);
  image.writeUInt32LE(base + at.functions, headers + 28);
  image.writeUInt32LE(base + at.names, headers + 32);
  image.writeUInt32LE(base + at.ordinals, headers + 36);
  // An address inside of the export directory is the name of another export.
  image.writeUInt32LE(base + at.target, headers + at.functions);
  image.writeUInt32LE(base + at.exported, headers + at.names);
  image.write(name, headers + at.name);
  image.write(exported, headers + at.exported);
  image.write(target, headers + at.target);
  return image;
}
