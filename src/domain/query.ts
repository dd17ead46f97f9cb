import * as v from "valibot";

/** A whole number of a query, in decimal digits. */
export const whole = (least: number, most: number = Number.MAX_SAFE_INTEGER) =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,16}$/, "must be a whole number"),
    v.toNumber(),
    v.pipe(v.number(), v.safeInteger(), v.minValue(least), v.maxValue(most)),
  );

/** A number of seconds of a query, in decimal digits, or as JavaScript writes a very small one. */
export const seconds = (most: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,9}(?:\.\d{1,20})?(?:e-\d{1,2})?$/, "must be a number of seconds"),
    v.toNumber(),
    v.pipe(v.number(), v.minValue(0), v.maxValue(most)),
  );

/** `true` or `false` of a query, or 1 or 0. */
export const flag = v.pipe(
  v.picklist(["true", "false", "1", "0"]),
  v.transform((word) => word === "true" || word === "1"),
  v.boolean(),
);

/** A parameter that can be given several times. */
export const several = <S extends v.GenericSchema<string, string>>(item: S, most: number) =>
  v.pipe(
    v.union([
      v.array(item),
      v.pipe(
        item,
        v.transform((one) => [one]),
      ),
    ]),
    v.pipe(v.array(item), v.maxLength(most)),
  );
