import fs from "node:fs";
import { MCP_LIMITS, type McpResult } from "../../domain/mcp-call.ts";

const NEWLINE = 0x0a;

/** Where what people may read of a server's output goes: the job's own streams. A sink never throws. */
export interface OutputSinks {
  readonly stdout: (bytes: Uint8Array) => Promise<void>;
  readonly stderr: (bytes: Uint8Array) => Promise<void>;
}

/** A process's own streams as such. */
export const ownStreams: OutputSinks = { stdout: (bytes) => write(1, bytes), stderr: (bytes) => write(2, bytes) };

/** What a server writes during one call: counted, bounded, and shown where it is no message. */
export class CallOutput {
  readonly #counts = {
    stdout_bytes: 0,
    stderr_bytes: 0,
    stderr_dropped_bytes: 0,
    junk_lines: 0,
    junk_bytes: 0,
    stray_answers: 0,
  };

  constructor(private readonly sinks: OutputSinks) {}

  get counts(): McpResult["output"] {
    return { ...this.#counts };
  }

  /** All that has come. */
  get bytes(): number {
    return this.#counts.stdout_bytes + this.#counts.stderr_bytes;
  }

  /** Bytes of standard output have come. False where they are too many by now. */
  came(bytes: number): boolean {
    this.#counts.stdout_bytes += bytes;
    return this.#counts.stdout_bytes <= MCP_LIMITS.stdoutBytes;
  }

  strayAnswer(): void {
    this.#counts.stray_answers++;
  }

  /** A line of standard output that is no message. */
  async junk(line: Uint8Array): Promise<void> {
    this.#counts.junk_lines++;
    this.#counts.junk_bytes += line.length;
    if (this.#counts.junk_lines > MCP_LIMITS.junkLines) return;
    const shown = new Uint8Array(line.length + 1);
    shown.set(line);
    shown[line.length] = NEWLINE;
    await this.sinks.stdout(shown);
  }

  async standardError(bytes: Uint8Array): Promise<void> {
    const room = Math.max(0, MCP_LIMITS.stderrBytes - this.#counts.stderr_bytes);
    this.#counts.stderr_bytes += bytes.length;
    this.#counts.stderr_dropped_bytes += Math.max(0, bytes.length - room);
    if (room > 0) await this.sinks.stderr(bytes.subarray(0, room));
  }
}

/** All of it. Nobody reads any more where that fails, which is not the call's concern. */
async function write(fd: number, bytes: Uint8Array): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const count = await new Promise<number>((resolve) => {
      fs.write(fd, bytes, from, bytes.length - from, null, (error, written) => resolve(error === null ? written : -1));
    });
    if (count < 0) return;
    from += count;
  }
}
