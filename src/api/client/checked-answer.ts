import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";

/** A word of a list to which a later version may have added some. */
const WORD = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * What a later version may do: add members, and words to a list, and raise a bound; what an answer may hold in all is bounded where it is read.
 */
function isLater(issue: v.BaseIssue<unknown>): boolean {
  if (issue.type === "strict_object") return issue.expected === "never";
  if (issue.type === "picklist") return typeof issue.input === "string" && WORD.test(issue.input);
  return issue.type === "max_length" || issue.type === "max_value";
}

/** The objects in which a member is missing, and the member; null where anything else is wrong. */
function lacking(issues: readonly v.BaseIssue<unknown>[]): [object: Record<string, unknown>, member: string][] | null {
  const lacks: [Record<string, unknown>, string][] = [];
  for (const { path } of issues) {
    const last = path?.at(-1);
    if (last?.type !== "object" || last.origin !== "key" || Object.hasOwn(last.input, last.key)) return null;
    lacks.push([last.input, last.key]);
  }
  return lacks;
}

/**
 * An answer as it came, members included that are not known here. What an earlier version did not say yet, and may be null, is null.
 *
 * @param answer is changed in this
 * @param who answered, for people
 * @throws RelayError answer_malformed where it is none of this operation
 */
export function checkedAnswer<S extends v.GenericSchema>(schema: S, answer: unknown, who: string): v.InferOutput<S> {
  try {
    const wrong = issuesOf(schema, answer);
    if (wrong.length === 0) return answer as v.InferOutput<S>;
    const lacks = lacking(wrong);
    for (const [object, member] of lacks ?? []) object[member] = null;
    const left = lacks === null ? wrong : issuesOf(schema, answer);
    if (left.length === 0) return answer as v.InferOutput<S>;
    // As it came, where nothing stood in for what is missing.
    const where = v.getDotPath(left[0]!);
    throw notThat(who, textOf(wrong.find((issue) => v.getDotPath(issue) === where) ?? left[0]!));
  } catch (error) {
    if (error instanceof RangeError) throw notThat(who, "it is nested too deep");
    throw error;
  }
}

const issuesOf = (schema: v.GenericSchema, answer: unknown): v.BaseIssue<unknown>[] =>
  (v.safeParse(schema, answer).issues ?? []).filter((issue) => !isLater(issue));

function textOf(issue: v.BaseIssue<unknown>): string {
  const where = v.getDotPath(issue);
  return (where === null ? issue.message : `${where}: ${issue.message}`).slice(0, 500);
}

const notThat = (who: string, what: string): RelayError =>
  new RelayError("answer_malformed", `${who} gave an answer that is none to what was asked: ${what}`);
