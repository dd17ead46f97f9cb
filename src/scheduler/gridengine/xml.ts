/**
 * The `job_list` elements of what `qstat -xml` prints: what is in each of their elements by its name; of `<hard_request name="h_rt">` by `hard_request:h_rt`. The
 * schema is qstat.xsd of Grid Engine; elements that are not known are passed over. Null for another document, or one that was cut.
 */
export function jobsFrom(text: string): ((element: string) => string | undefined)[] | null {
  if (!/^\s*<\?xml[^>]*>\s*<job_info\b/.test(text) || !/<\/job_info>\s*$/.test(text)) return null;
  const found: ((element: string) => string | undefined)[] = [];
  for (const [, inner] of text.matchAll(/<job_list\b[^>]*>(.*?)<\/job_list>/gs)) {
    const elements = new Map<string, string>();
    for (const [, name, attribute, value] of inner!.matchAll(/<([A-Za-z_]+)(?:\s+name="([^"<>]*)"[^<>]*)?>([^<]*)<\/\1>/g)) {
      const key = attribute === undefined ? name! : `${name}:${attribute}`;
      if (!elements.has(key)) elements.set(key, decoded(value!));
    }
    found.push((element) => elements.get(element));
  }
  return found;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

const decoded = (text: string): string =>
  text.replace(/&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g, (whole, name?: string, decimal?: string, hex?: string) => {
    if (name !== undefined) return ENTITIES[name]!;
    const point = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal);
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
