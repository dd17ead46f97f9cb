import { MCP_LIMITS } from "../../domain/mcp-call.ts";
import type { JsonObject } from "../../domain/primitives.ts";
import { readRegular } from "../../lib/files/regular-file.ts";
import { emit } from "../emit.ts";
import { CallFailed } from "./call-failed.ts";
import { isObject } from "./message.ts";

/** What a server asks of the person behind its client. */
export interface AskedInput {
  readonly method: string;
  readonly params: JsonObject;
}

const ELICIT = "elicitation/create";
/** How often it is looked whether somebody has answered. */
const LOOK_MS = 200;
const ANSWERS_MAX_BYTES = 4 * 1024 * 1024;

/** What a call asks for by its job's timeline, and is answered there (docs/mcp.md, Input). */
export class InputRounds {
  #rounds = 0;
  #asked = 0;

  /**
   * @param eventsDir where reports of the job go
   * @param answersFile where the worker puts what it has found on the timeline: `{"responses":{key:answer}}`
   */
  constructor(
    private readonly eventsDir: string,
    private readonly answersFile: string,
    private readonly tool: string,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Ask, and wait for as long as it takes.
   *
   * @returns an answer to each, in their order
   * @throws CallFailed input_refused, the reason of the signal
   */
  async ask(wanted: readonly AskedInput[]): Promise<readonly JsonObject[]> {
    for (const { method, params } of wanted) {
      const form = method === ELICIT && (params["mode"] ?? "form") === "form";
      if (!form) throw new CallFailed("input_refused", `it asked for ${method.slice(0, 100)}, which is not offered`);
    }
    if (++this.#rounds > MCP_LIMITS.inputRounds)
      throw new CallFailed("input_refused", `it asked for input more than ${MCP_LIMITS.inputRounds} times`);
    const requests = Object.fromEntries(wanted.map(({ method, params }) => [`input-${++this.#asked}`, { method, params }]));
    const bytes = Buffer.byteLength(JSON.stringify(requests));
    if (bytes > MCP_LIMITS.inputRoundBytes)
      throw new CallFailed("input_refused", `what it asks for takes ${bytes} bytes, more than ${MCP_LIMITS.inputRoundBytes}`);
    emit(this.eventsDir, {
      type: "task-event",
      event_type: "mcp.input_requested",
      label: this.tool,
      summary: wanted
        .map(({ params }) => String(params["message"] ?? "it asks for something"))
        .join("; ")
        .slice(0, 500),
      metadata: { requests },
    });
    return this.#answers(Object.keys(requests));
  }

  async #answers(keys: readonly string[]): Promise<readonly JsonObject[]> {
    for (;;) {
      this.signal.throwIfAborted();
      const responses = this.#read();
      const found = keys.map((key) => responses[key]);
      if (found.every(isObject)) return found;
      await Bun.sleep(LOOK_MS);
    }
  }

  #read(): Readonly<Record<string, JsonObject>> {
    const read = readRegular(this.answersFile, ANSWERS_MAX_BYTES);
    if (typeof read === "string") return {};
    const parsed: unknown = JSON.parse(read.text);
    const responses = isObject(parsed) ? parsed["responses"] : null;
    return isObject(responses) ? (responses as Record<string, JsonObject>) : {};
  }
}
