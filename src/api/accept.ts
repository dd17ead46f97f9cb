/**
 * How much a client wants a media type by its Accept field (RFC 9110, section 12.5.1): from 0, not at all, to 1. The most specific range that covers the type counts; without a field, or
 * with one that cannot be read, everything is as welcome.
 *
 * @param type as in `application/json`
 */
export function qualityOf(accept: string | undefined, type: string): number {
  const ranges = (accept ?? "").split(",").flatMap((one) => rangeOf(one) ?? []);
  if (ranges.length === 0) return 1;
  for (const wanted of [type, `${type.split("/")[0]}/*`, "*/*"]) {
    const found = ranges.find(({ range }) => range === wanted);
    if (found !== undefined) return found.quality;
  }
  return 0;
}

function rangeOf(text: string): { readonly range: string; readonly quality: number } | null {
  const [range = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+\/[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(range)) return null;
  const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
  if (weight !== undefined && !/^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight)) return null;
  return { range, quality: weight === undefined ? 1 : Number(weight) };
}
