import { dlopen, ptr } from "bun:ffi";
import fs from "node:fs";
import { closeHandle } from "./windows.ts";

/** Of kernel32, for consoles (Microsoft's documentation, "Console Functions"). */
const CALLS = {
  CreateFileW: { args: ["ptr", "u32", "u32", "u64", "u32", "u32", "u64"], returns: "u64" },
  GetConsoleMode: { args: ["u64", "ptr"], returns: "i32" },
  SetConsoleMode: { args: ["u64", "u32"], returns: "i32" },
  FlushConsoleInputBuffer: { args: ["u64"], returns: "i32" },
} as const satisfies Parameters<typeof dlopen>[1];

let loaded: ReturnType<typeof dlopen<typeof CALLS>>["symbols"] | undefined;

function kernel() {
  loaded ??= dlopen("kernel32.dll", CALLS).symbols;
  return loaded;
}

const INVALID_HANDLE = 0xffff_ffff_ffff_ffffn;
const GENERIC_READ_WRITE = 0xc000_0000;
const SHARE_READ_WRITE = 1 | 2;
const OPEN_EXISTING = 3;

const PROCESSED_INPUT = 0x1;
const LINE_INPUT = 0x2;
const ECHO_INPUT = 0x4;

const MAX_BYTES = 16 * 1024;
/** Time for what has been written to be shown, before everything waits for a key; milliseconds. */
const SETTLE_MS = 50;

/** The console that this process belongs to, wherever standard input and output lead. See ControllingTerminal. */
export class WindowsConsole {
  #shown = true;

  private constructor(
    private readonly handle: bigint,
    private readonly input: number,
    private readonly output: number,
    private readonly before: number,
  ) {}

  /** Null where there is none. */
  static open(): WindowsConsole | null {
    const name = Buffer.from("CONIN$\0", "utf16le");
    const handle = BigInt(kernel().CreateFileW(ptr(name), GENERIC_READ_WRITE, SHARE_READ_WRITE, 0n, OPEN_EXISTING, 0, 0n));
    if (handle === INVALID_HANDLE) return null;
    const modes = new Uint32Array(1);
    try {
      if (kernel().GetConsoleMode(handle, ptr(modes)) === 0) throw new Error("this is no console");
      return new WindowsConsole(handle, fs.openSync("CONIN$", "r+"), fs.openSync("CONOUT$", "r+"), modes[0]!);
    } catch {
      closeHandle(handle);
      return null;
    }
  }

  write(text: string): void {
    fs.writeSync(this.output, text.replace(/\r?\n/g, "\r\n"));
  }

  /** Whether what is typed is shown. What was typed before a change is thrown away. */
  setEcho(shown: boolean): void {
    if (shown === this.#shown) return;
    this.#shown = shown;
    const { SetConsoleMode, FlushConsoleInputBuffer } = kernel();
    FlushConsoleInputBuffer(this.handle);
    SetConsoleMode(this.handle, ((this.before | PROCESSED_INPUT | LINE_INPUT) & ~ECHO_INPUT) | (shown ? ECHO_INPUT : 0));
  }

  /**
   * The next line without its end; null at the end of input (Ctrl-Z), and after Ctrl-C. The system's line editing applies. Nothing else of this process goes on
   * until the line is there: a read in another thread does not always come back.
   *
   * @throws the signal's reason; RangeError when it has more than 16 KiB, or letters that the console does not hand on
   */
  async line(signal: AbortSignal): Promise<string | null> {
    await Bun.sleep(SETTLE_MS);
    signal.throwIfAborted();
    const buffer = Buffer.alloc(MAX_BYTES);
    const line = buffer.toString("utf8", 0, fs.readSync(this.input, buffer, 0, MAX_BYTES, null));
    // A key that is a signal ends the read, and the signal comes when everything goes on.
    if (line === "") await Bun.sleep(SETTLE_MS);
    signal.throwIfAborted();
    if (line === "" || line.startsWith("\x1a")) return null;
    // In place of what is not ASCII, older consoles give this, which nobody can type.
    if (line.includes("\0")) throw new RangeError("this console hands on ASCII only");
    if (!line.endsWith("\n")) throw new RangeError(`a line has more than ${MAX_BYTES} bytes`);
    return line.replace(/\r?\n$/, "");
  }

  /** Modes are as they were. */
  close(): void {
    kernel().SetConsoleMode(this.handle, this.before);
    for (const fd of [this.input, this.output]) fs.closeSync(fd);
    closeHandle(this.handle);
  }
}
