import { RelayError } from "../../domain/errors.ts";

/** The first part of an HTTP/1.1 answer (RFC 9112, section 2.1). Names are in lower case, in the order of arrival. */
export interface AnswerHead {
  readonly status: number;
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** The values of those fields that say how it is read, each time that they are there. */
  readonly said: Readonly<Record<Saying, readonly string[]>>;
}

type Saying = "connection" | "content-length" | "content-type" | "transfer-encoding";

/** How the end of a message is told (RFC 9112, section 6.3). */
export type Framing = { readonly kind: "none" } | { readonly kind: "length"; readonly bytes: number } | { readonly kind: "chunked" };

export const malformed = (what: string): RelayError => new RelayError("answer_malformed", what);

const BEGINNING = Buffer.from("HTTP/1.1 ");

const noStatusLine = (): RelayError => malformed("the answer does not begin with a status line of HTTP/1.1");

/**
 * Look at the first bytes of what may not be an answer: whoever speaks another protocol may wait for the other side, and never send the rest of a head.
 *
 * @throws RelayError answer_malformed where the bytes cannot become an answer
 */
export function checkBeginning(bytes: Buffer): void {
  const length = Math.min(bytes.length, BEGINNING.length);
  if (bytes.compare(BEGINNING, 0, length, 0, length) !== 0) throw noStatusLine();
}

const STATUS_LINE = /^HTTP\/1\.1 ([1-9]\d\d) [\t\x20-\x7e\x80-\xff]*$/;
/** token ":" OWS value OWS (RFC 9110, section 5.5; RFC 9112, section 5): no space before the colon, no folding, no control characters. */
const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?)[\t ]*$/;

/**
 * @param text everything before the empty line, as Latin-1
 * @throws RelayError answer_malformed
 */
export function parseHead(text: string): AnswerHead {
  const [first = "", ...lines] = text.split("\r\n");
  const status = STATUS_LINE.exec(first);
  if (status === null) throw noStatusLine();
  const said: Record<Saying, string[]> = { connection: [], "content-length": [], "content-type": [], "transfer-encoding": [] };
  const fields = lines.map((line) => {
    const field = parseField(line);
    const [name, value] = field;
    if (isSaying(name)) said[name].push(value);
    return field;
  });
  return { status: Number(status[1]), fields, said };
}

const isSaying = (name: string): name is Saying =>
  name === "connection" || name === "content-length" || name === "content-type" || name === "transfer-encoding";

function parseField(line: string): readonly [string, string] {
  const field = fieldOf(line);
  if (field === null) throw malformed("a field of the answer's head is not well-formed");
  return field;
}

/** A field line's name, in lower case, and value; null where it is not well-formed. */
export function fieldOf(line: string): readonly [name: string, value: string] | null {
  const field = FIELD.exec(line);
  return field === null ? null : [field[1]!.toLowerCase(), field[2]!];
}

/**
 * How the body ends. An answer that leaves it to the end of the connection is refused: that could not be told from a cut; and so is one that
 * says it twice, for two readers may believe different halves.
 *
 * @throws RelayError answer_malformed
 */
export function framingOf({ status, said }: AnswerHead, method: string): Framing {
  const { "content-length": lengths, "transfer-encoding": codings } = said;
  if (lengths.length + codings.length > 1) throw malformed("the answer says more than once how long it is");
  if (codings.length > 0 && codings[0]?.toLowerCase() !== "chunked")
    throw malformed("the answer has a transfer coding that is not chunked");
  if (lengths.length > 0 && !/^\d{1,15}$/.test(lengths[0]!)) throw malformed("the answer's length is no number");
  if (method === "HEAD" || status < 200 || status === 204 || status === 304) return { kind: "none" };
  if (codings.length > 0) return { kind: "chunked" };
  if (lengths.length > 0) return { kind: "length", bytes: Number(lengths[0]) };
  throw malformed("the answer does not say how long it is");
}

/** Whether the connection is over with this answer (RFC 9112, section 9.6). */
export const closesAfter = ({ said }: AnswerHead): boolean =>
  said.connection.some((value) =>
    value
      .toLowerCase()
      .split(",")
      .some((option) => option.trim() === "close"),
  );
