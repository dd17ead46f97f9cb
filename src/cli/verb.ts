import type { Installation } from "./installation.ts";
import type { CliIo } from "./io.ts";
import type { Reader } from "./values.ts";

interface Documented {
  /** Without the dashes. */
  readonly short?: string;
  /** Other names under which it is taken; help shows none of them. */
  readonly also?: readonly string[];
  readonly doc: string;
}

/** An option that is there or not. */
export interface Switch extends Documented {
  readonly kind: "switch";
}

/** An option with a value, at most once. */
export interface Value<T> extends Documented {
  readonly kind: "value";
  readonly reader: Reader<unknown>;
  readonly fallback: T;
  /** Whether the verb cannot do without it. */
  readonly required?: true;
}

/** An option with a value, as often as one likes. */
export interface List<T> extends Documented {
  readonly kind: "list";
  readonly reader: Reader<T>;
}

/** An option that means nothing here, or cannot be honoured; it is known so that the reason can be given. */
export interface Foreign extends Documented {
  readonly kind: "ignored" | "refused";
  readonly takesValue: boolean;
}

export type Flag = Switch | Value<unknown> | List<unknown> | Foreign;
export type Flags = Readonly<Record<string, Flag>>;
/** In the order in which they are given; a reader marked optional may only be followed by others that are. */
export type Positionals = Readonly<Record<string, Reader<unknown> & { readonly optional?: true }>>;

export type FlagValues<F extends Flags> = {
  readonly [K in keyof F as F[K] extends Foreign ? never : K]: F[K] extends Switch
    ? boolean
    : F[K] extends Value<infer T>
      ? T
      : F[K] extends List<infer T>
        ? readonly T[]
        : never;
};
type PositionalValues<P extends Positionals> = {
  readonly [K in keyof P]: P[K] extends Reader<infer T> ? (P[K] extends { readonly optional: true } ? T | undefined : T) : never;
};

export const toggle = (doc: string, short?: string): Switch => ({ kind: "switch", doc, ...(short === undefined ? {} : { short }) });
export const option = <T>(reader: Reader<T>, doc: string, short?: string): Value<T | undefined> => ({
  kind: "value",
  reader,
  doc,
  fallback: undefined,
  ...(short === undefined ? {} : { short }),
});
export const optionOr = <T>(reader: Reader<T>, fallback: T, doc: string): Value<T> => ({ kind: "value", reader, doc, fallback });
export const required = <T>(reader: Reader<T>, doc: string): Value<T> => ({
  kind: "value",
  reader,
  doc,
  fallback: undefined as T,
  required: true,
});
export const list = <T>(reader: Reader<T>, doc: string): List<T> => ({ kind: "list", reader, doc });
export const optional = <T>(reader: Reader<T>): Reader<T> & { readonly optional: true } => ({ ...reader, optional: true });
/** Take an option under other names, too. */
export const also = <F extends Flag>(flag: F, ...names: readonly string[]): F => ({ ...flag, also: names });
/** Accepted, with a notice that gives the reason. */
export const ignored = (doc: string, takesValue = true): Foreign => ({ kind: "ignored", doc, takesValue });
/** Known, and refused with the reason. */
export const refused = (doc: string, takesValue = true): Foreign => ({ kind: "refused", doc, takesValue });

/** Every command by noun, and a sentence on each noun. */
export interface CommandTable {
  readonly commands: Readonly<Record<string, Readonly<Record<string, { readonly summary: string; readonly alias?: true }>>>>;
  readonly nouns: Readonly<Record<string, string>>;
}

/** What a verb gets to work with. */
export interface Call<F extends Flags = Flags, P extends Positionals = Positionals> {
  readonly flags: FlagValues<F>;
  readonly args: PositionalValues<P>;
  /** What came after the first `--`, untouched. */
  readonly rest: readonly string[];
  readonly io: CliIo;
  /** Whether the record itself is asked for. */
  readonly json: boolean;
  /** Whether whatever would be asked is answered with yes. */
  readonly yes: boolean;
  /** Whether nobody is to be asked, about whatever it is. */
  readonly noInput: boolean;
  readonly relay: Installation;
  /** What help is made of. */
  readonly table: CommandTable;
}

/** One verb: what it takes, how it is explained, what it does. */
export interface Verb<F extends Flags = Flags, P extends Positionals = Positionals> {
  /** One sentence, without a full stop. */
  readonly summary: string;
  /** What the summary leaves open; paragraphs. */
  readonly details?: string;
  readonly positionals: P;
  /** Label of what may follow `--`; absent: nothing may. */
  readonly rest?: string;
  readonly flags: F;
  /** Command lines without the program's name, each with what it does. */
  readonly examples: readonly (readonly [line: string, what: string])[];
  /**
   * Of a verb that takes something away which does not come back by itself: what would be lost by this call, as a clause that begins with `this`; null where
   * nothing would. It is confirmed before `run` (confirm.ts).
   */
  readonly takesAway?: (call: Call<F, P>) => Promise<string | null>;
  /** Resolves to the exit code. */
  readonly run: (call: Call<F, P>) => Promise<number>;
}

/** Fix the types of a verb from its declaration. */
export const defineVerb = <const F extends Flags, const P extends Positionals>(verb: Verb<F, P>): Verb<F, P> => verb;
