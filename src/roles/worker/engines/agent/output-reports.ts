import fs from "node:fs";
import path from "node:path";
import type { AgentAdapter } from "../../../../domain/agent.ts";
import type { EmitLine } from "../../../../domain/emit-line.ts";
import { LIMITS } from "../../../../domain/limits.ts";
import { codexLine } from "../../../../execution/agent/codex-line.ts";
import { type EmitBatch, type EmitMemory, readLines } from "../../../../execution/emit-files.ts";
import { parseEmitLine } from "../../../../execution/emit-line.ts";
import { ofAttemptFile } from "../../../../execution/own-place.ts";
import { logFile } from "../../../../execution/spool-records.ts";
import { openRegular } from "../../../../lib/files/regular-file.ts";
import type { EngineAround } from "../engine.ts";

/** Standard output among the sources of an attempt's reports; no file of a job's can have this name. */
const SOURCE = "agent:stdout";
/** Lines that are no reports and of which it is said. */
const REFUSALS_MAX = 100;

const BRACE = 0x7b;
const PARSE: Readonly<Record<Exclude<AgentAdapter, "exec">, (line: Uint8Array) => EmitLine | null>> = {
  codex: codexLine,
  // Whatever else the agent writes is text for people.
  generic: (line) => (line[0] === BRACE ? parseEmitLine(line) : null),
};

/** What an agent reports on its standard output, committed together with how far that was read. */
export class OutputReports {
  readonly #memory: EmitMemory = new Map();
  #refusals = 0;

  constructor(
    private readonly around: EngineAround<"remote_agent">,
    private readonly adapter: Exclude<AgentAdapter, "exec">,
  ) {}

  /** Take in a bounded piece of what is new. Resolves to whether there is more. */
  async take(): Promise<boolean> {
    const { context, fence, directory } = this.around;
    const file = path.join(directory, logFile("stdout"));
    const offset = (await context.store.emitOffsets(fence)).get(SOURCE) ?? 0;
    if (offset >= LIMITS.emitBytes) return false;
    const opened = ofAttemptFile(file, openRegular, "absent" as const);
    if (typeof opened === "string") return false;
    try {
      const { batch, more } = readLines(opened.fd, SOURCE, offset, this.#memory, (line) => this.#line(line));
      if (batch === null) return more;
      const over = batch.next_offset >= LIMITS.emitBytes;
      await context.store.ingest(fence, { deltas: [], truncations: [], emits: [over ? lastOf(batch) : batch], notices: [] });
      return more && !over;
    } finally {
      fs.closeSync(opened.fd);
    }
  }

  #line(bytes: Uint8Array): EmitLine | null {
    const line = PARSE[this.adapter](bytes);
    return line?.type === "refused" && ++this.#refusals > REFUSALS_MAX ? null : line;
  }
}

const lastOf = (batch: EmitBatch): EmitBatch => {
  const reason = `${LIMITS.emitBytes} bytes of standard output were read for reports; the rest is not`;
  return { ...batch, lines: [...batch.lines, { type: "refused", reason }] };
};
