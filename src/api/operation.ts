import type { Context, Hono } from "hono";
import * as v from "valibot";
import { type ErrorCode, RelayError } from "../domain/errors.ts";
import { parse, queryObject, readJsonBody } from "./request.ts";

/** What an operation answers with besides problems: JSON of a schema, an event stream, a WebSocket's messages, or bytes. */
export type Answer =
  | { readonly kind: "json"; readonly schema: v.GenericSchema; readonly status?: readonly number[] }
  | { readonly kind: "web-socket"; readonly schema: v.GenericSchema }
  | { readonly kind: "text"; readonly type: string }
  | { readonly kind: "events"; readonly schema: v.GenericSchema }
  /** `inline` is the schema of a document that carries them. */
  | { readonly kind: "bytes"; readonly status?: readonly number[]; readonly inline?: v.GenericSchema };

/** One route with everything that the OpenAPI document and the handler need to know of it. */
export interface Operation<Q extends v.GenericSchema = v.GenericSchema, B extends v.GenericSchema = v.GenericSchema> {
  readonly method: "get" | "post" | "put" | "delete";
  /** Hono path, for example /jobs/:id. */
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  /** Whether it is answered without a token, where one is wanted. */
  readonly open?: boolean;
  readonly query?: Q;
  /** The reason for a query that does not fit; without one it is request_validation_failed. */
  readonly queryRefusal?: ErrorCode;
  /** The reasons for single parameters that do not fit. */
  readonly parameterRefusals?: Readonly<Record<string, ErrorCode>>;
  readonly body?: B;
  /** Whether a request without a body is taken as one with `{}`. */
  readonly bodyOptional?: boolean;
  /** The handler reads the body itself, when it is time for that: JSON of the body's schema, or bytes as they are. */
  readonly reads?: "json" | "bytes";
  readonly answer: Answer;
  /** Reasons that a caller has to expect, besides those of validation. */
  readonly errors?: readonly ErrorCode[];
  /** Request headers that mean something here. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly handler: (input: {
    c: Context;
    query: v.InferOutput<Q>;
    body: v.InferOutput<B>;
    param: (name: string) => string;
  }) => Promise<Response> | Response;
}

/** An OpenAPI document, as far as an answer says. */
export const OpenApi = v.looseObject({ openapi: v.string() });

/** Fix the type parameters of an operation from its schemas. */
export const operation = <Q extends v.GenericSchema, B extends v.GenericSchema>(op: Operation<Q, B>): Operation =>
  op as unknown as Operation;

/** The query of an operation that takes no parameters. */
const NO_QUERY = v.strictObject({});
/** The same in a body; a list is an object to valibot. */
const NO_BODY = v.pipe(
  v.unknown(),
  v.check((body) => !Array.isArray(body), "it is a list"),
  v.strictObject({}),
);

/** What somebody says in a body that nothing reads would be ignored: an option in the wrong place. */
async function refuseBody(request: Request): Promise<void> {
  const length = request.headers.get("content-length");
  if ((length === null || length === "0") && !request.headers.has("transfer-encoding")) return;
  const body = request.body === null ? undefined : await readJsonBody(request);
  if (body !== undefined) parse(NO_BODY, body, "this operation takes no body:");
}

const refusalOf = ({ queryRefusal, parameterRefusals }: Operation, name: string): ErrorCode =>
  (parameterRefusals !== undefined && Object.hasOwn(parameterRefusals, name) ? parameterRefusals[name] : queryRefusal) ??
  "request_validation_failed";

/** Mount operations: query and body are validated before the handler runs. */
export function mount(app: Hono, operations: readonly Operation[]): void {
  for (const op of operations) {
    app.on(op.method.toUpperCase(), op.path, async (c) => {
      const query = parse(op.query ?? NO_QUERY, queryObject(c.req.url), "query", (name) => refusalOf(op, name));
      let body: unknown;
      if (op.reads !== undefined) body = undefined;
      else if (op.body === undefined) await refuseBody(c.req.raw);
      else {
        const raw = await readJsonBody(c.req.raw);
        body = parse(op.body, raw === undefined && op.bodyOptional ? {} : raw, "body");
      }
      const response = await op.handler({ c, query, body, param: (name) => c.req.param(name) ?? "" });
      // A body that is left away would wait for a reader, with all that it holds.
      if (c.req.raw.method === "HEAD") await response.body?.cancel();
      return response;
    });
  }
  for (const path of new Set(operations.map((op) => op.path))) {
    const methods = operations.filter((op) => op.path === path).map((op) => op.method.toUpperCase());
    app.all(path, (c) => {
      throw new RelayError("method_not_allowed", `${c.req.path.slice(0, 200)} takes ${methods.join(" and ")}`, { allowed: methods });
    });
  }
}

/** A JSON answer. */
export const json = (value: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json", ...headers } });
