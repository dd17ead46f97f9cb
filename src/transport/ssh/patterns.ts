/**
 * Whether a text fits a pattern of ssh_config(5), PATTERNS: `*` any characters, `?` exactly one. Takes time proportional to both lengths, whatever
 * the pattern.
 */
export function fitsPattern(text: string, pattern: string): boolean {
  let at = 0;
  let place = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    if (pattern[place] === "*") {
      star = place++;
      resume = at;
    } else if (place < pattern.length && (pattern[place] === "?" || pattern[place] === text[at])) {
      place++;
      at++;
    } else if (star >= 0) {
      place = star + 1;
      at = ++resume;
    } else return false;
  }
  while (pattern[place] === "*") place++;
  return place === pattern.length;
}

/** Whether a text fits a list of patterns, comma by comma; one that fits and begins with `!` decides against it. */
export function fitsList(text: string, list: string): boolean {
  let fits = false;
  for (const entry of list.split(",")) {
    const negated = entry.startsWith("!");
    if (!fitsPattern(text, negated ? entry.slice(1) : entry)) continue;
    if (negated) return false;
    fits = true;
  }
  return fits;
}

/** The same for names of hosts, whose case does not matter. */
export const fitsHostList = (host: string, list: string): boolean => fitsList(host.toLowerCase(), list.toLowerCase());
