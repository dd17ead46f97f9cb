import { EXIT, hintOf, isRelayError, RelayError } from "../../domain/errors.ts";
import type { CliIo } from "../io.ts";
import { bytesText } from "../print/quantities.ts";
import { printFields, printJson } from "../print/table.ts";
import { clusterName, decimal } from "../values.ts";
import { ignored, optionOr, required } from "../verb.ts";

/** Options that the four tests have in common. */
export const TESTED = {
  cluster: required(clusterName, "Which one"),
  "timeout-seconds": optionOr(decimal, 30, "How long everything may take"),
  "local-bind-port": ignored("ports of loopback are taken from those that are free"),
  "local-port": ignored("the worker's own socket is what is reached"),
  "remote-api-port": ignored("the worker has no port"),
  "proxy-name": ignored("the worker's own proxy is what is tried"),
} as const;

const ROUND_TRIPS = 10;
/** For how long content is taken in at most, to see how fast it comes; milliseconds. */
const MAX_MS = 2_000;
/** Where that is. */
export const CONTENT_PATH = "/link/content";

/** Something to measure a way to a worker by. */
export interface Measured {
  /** Ask the worker something small. */
  roundTrip(signal: AbortSignal): Promise<void>;
  /** What the worker has at CONTENT_PATH; null where it is of a version that has nothing there. */
  content(signal: AbortSignal): Promise<ReadableStream<Uint8Array> | null>;
}

export interface Step {
  readonly step: string;
  readonly ok: boolean;
  readonly took_ms: number;
  readonly detail: string | null;
}

/** What a test says. */
export interface TransportTest {
  readonly schema_version: "clio-relay.transport-test.v1";
  readonly cluster: string;
  readonly transport: string;
  readonly ok: boolean;
  readonly tried: readonly Step[];
  readonly round_trip_ms: { readonly least: number; readonly median: number; readonly most: number; readonly count: number } | null;
  readonly throughput: { readonly bytes: number; readonly seconds: number; readonly bytes_per_second: number } | null;
  readonly failure: { readonly layer: string; readonly reason: string; readonly detail: string; readonly fix: string | null } | null;
}

/** Goes through a test step by step; the first that fails is the layer that failed. */
export class Trial {
  readonly #tried: Step[] = [];
  #roundTrips: number[] = [];
  #throughput: TransportTest["throughput"] = null;

  constructor(
    private readonly cluster: string,
    private readonly transport: string,
    private readonly signal: AbortSignal,
  ) {}

  async step<T>(step: string, work: () => Promise<T> | T, detail: (result: T) => string | null = () => null): Promise<T> {
    const began = performance.now();
    const took = (): number => Math.round(performance.now() - began);
    try {
      const result = await work();
      this.#tried.push({ step, ok: true, took_ms: took(), detail: detail(result) });
      return result;
    } catch (error) {
      const layer = isRelayError(error) ? error.data["layer"] : undefined;
      const at = typeof layer === "string" ? layer : step;
      this.#tried.push({ step: at, ok: false, took_ms: took(), detail: error instanceof Error ? error.message : String(error) });
      throw error;
    }
  }

  /** A step whose failure is only noted, where it may fail. */
  async stepOrNote(step: string, mayFail: boolean, work: () => Promise<void>): Promise<void> {
    try {
      await this.step(step, work);
    } catch (error) {
      if (!mayFail || !isRelayError(error) || this.signal.aborted) throw error;
    }
  }

  async measure({ roundTrip, content }: Measured): Promise<void> {
    await this.step("round_trip", async () => {
      for (let left = ROUND_TRIPS; left > 0; left--) {
        const began = performance.now();
        await roundTrip(this.signal);
        this.#roundTrips.push(performance.now() - began);
      }
    });
    await this.step(
      "throughput",
      async () => {
        const began = performance.now();
        const stream = await content(this.signal);
        if (stream === null) return null;
        const bytes = await takenIn(stream, began + MAX_MS);
        const seconds = (performance.now() - began) / 1_000;
        this.#throughput = { bytes, seconds: rounded(seconds), bytes_per_second: Math.round(bytes / seconds) };
        return this.#throughput;
      },
      (measured) => {
        if (measured === null) return "not measured: the worker is of a version that has no content for it";
        return `${bytesText(measured.bytes)} of ${CONTENT_PATH} in ${measured.seconds} s`;
      },
    );
  }

  result(failure: TransportTest["failure"] = null): TransportTest {
    const sorted = this.#roundTrips.toSorted((a, b) => a - b);
    return {
      schema_version: "clio-relay.transport-test.v1",
      cluster: this.cluster,
      transport: this.transport,
      ok: failure === null,
      tried: this.#tried,
      round_trip_ms:
        sorted.length === 0
          ? null
          : {
              least: rounded(sorted[0]!),
              median: rounded(sorted[Math.floor(sorted.length / 2)]!),
              most: rounded(sorted.at(-1)!),
              count: sorted.length,
            },
      throughput: this.#throughput,
      failure,
    };
  }

  failed(error: RelayError): TransportTest {
    return this.result({
      layer: this.#tried.findLast(({ ok }) => !ok)?.step ?? "unknown",
      reason: error.code,
      detail: error.message,
      fix: hintOf(error) ?? null,
    });
  }
}

/** How much of it comes until then. */
async function takenIn(stream: ReadableStream<Uint8Array>, until: number): Promise<number> {
  const reader = stream.getReader();
  let bytes = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    bytes += part.value.length;
    if (performance.now() >= until) break;
  }
  await reader.cancel();
  return bytes;
}

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;

/**
 * Run a test and say what came of it. A failure of what is tested is an answer; the exit code says which.
 *
 * @returns the exit code
 */
export async function runTrial(
  { io, json }: { readonly io: CliIo; readonly json: boolean },
  { cluster, transport, seconds }: { readonly cluster: string; readonly transport: string; readonly seconds: number },
  work: (trial: Trial, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const interrupted = new AbortController();
  const off = io.onSignal("SIGINT", () => interrupted.abort());
  const signal = AbortSignal.any([interrupted.signal, AbortSignal.timeout(Math.max(1, seconds) * 1_000)]);
  const trial = new Trial(cluster, transport, signal);
  let result: TransportTest;
  let code: number = EXIT.ok;
  try {
    await work(trial, signal);
    result = trial.result();
  } catch (error) {
    if (interrupted.signal.aborted) throw error;
    const failure = signal.aborted ? outOfTime(seconds) : error;
    if (!isRelayError(failure)) throw failure;
    result = trial.failed(failure);
    code = failure.rule.exit;
  } finally {
    off();
  }
  if (json) await printJson(io.stdout, result);
  else await print(io, result);
  return code;
}

const outOfTime = (seconds: number): RelayError =>
  new RelayError("observation_timeout", `it was not done within ${seconds} s`, {}, "--timeout-seconds N");

async function print(io: CliIo, { transport, tried, round_trip_ms, throughput, failure }: TransportTest): Promise<void> {
  await printFields(io.stdout, [
    ["transport", transport],
    ...tried.map(
      ({ step, ok, took_ms, detail }) => [step, `${ok ? "ok" : "FAILED"}, ${took_ms} ms${detail === null ? "" : `: ${detail}`}`] as const,
    ),
    ["round trip", round_trip_ms === null ? null : `${round_trip_ms.median} ms (${round_trip_ms.least} to ${round_trip_ms.most})`],
    ["throughput", throughput === null ? null : `${bytesText(throughput.bytes_per_second)}/s`],
    ["failed at", failure?.layer ?? null],
    ["fix", failure?.fix ?? null],
  ]);
}
