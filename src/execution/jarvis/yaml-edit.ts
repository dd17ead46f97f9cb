import { isMap, isScalar, Scalar, type YAMLMap } from "yaml";

/** Text that takes the place of a part of another. */
interface Splice {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/**
 * Replaces single values in a text of YAML, all of whose other bytes stay as they are: a writer would put numbers, dates and lines in other forms than those in which
 * they came.
 */
export class YamlEdit {
  readonly #splices: Splice[] = [];

  constructor(private readonly text: string) {}

  /**
   * Give a member of a mapping a value: a string or a boolean.
   *
   * @returns false where the place of the value is one that cannot be cut out: another node refers to it, or it has a tag
   */
  set(map: YAMLMap, key: string, value: string | boolean): boolean {
    const said = JSON.stringify(value);
    // Of equal keys the last counts.
    const pair = map.items.findLast((item) => isScalar(item.key) && item.key.value === key);
    if (pair === undefined) return this.#add(map, `${key}: ${said}`);
    const node = pair.value;
    if (!isScalar(node) || node.anchor !== undefined || node.tag !== undefined || node.range == null) return false;
    if (node.type === Scalar.BLOCK_FOLDED || node.type === Scalar.BLOCK_LITERAL) return false;
    const [from, to] = node.range;
    this.#splices.push({ from, to, text: from === to ? ` ${said}` : said });
    return true;
  }

  #add(map: YAMLMap, member: string): boolean {
    if (map.range == null) return false;
    if (map.flow === true) {
      const from = map.range[0] + 1;
      this.#splices.push({ from, to: from, text: map.items.length === 0 ? ` ${member} ` : ` ${member},` });
      return true;
    }
    const first = map.items[0]?.key;
    if (!isScalar(first) || first.range == null || first.anchor !== undefined) return false;
    const [from] = first.range;
    const indentation = from - (this.text.lastIndexOf("\n", from - 1) + 1);
    this.#splices.push({ from, to: from, text: `${member}\n${" ".repeat(indentation)}` });
    return true;
  }

  toString(): string {
    let edited = this.text;
    // From the end, so that places in front stay where they are. Of several at one place the last comes first.
    for (const { from, to, text } of [...this.#splices].reverse().sort((a, b) => b.from - a.from))
      edited = edited.slice(0, from) + text + edited.slice(to);
    return edited;
  }
}

export const mapAt = (node: unknown): YAMLMap | null => (isMap(node) ? node : null);
