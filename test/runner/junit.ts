/** One test of a JUnit report. */
export interface TestCase {
  /** Path of the test file, relative to where the tests were started. */
  readonly file: string;
  /** Titles from the outermost on, joined by " > ". */
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped" | "todo";
  readonly assertions: number;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

const decode = (text: string): string =>
  text.replace(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (whole, decimal, hexadecimal, name) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    if (hexadecimal !== undefined) return String.fromCodePoint(Number.parseInt(hexadecimal, 16));
    return ENTITIES[name] ?? whole;
  });

function attributes(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name!, decode(value!)]));
}

/** Read the test cases of the report that `bun test --reporter=junit` writes. */
export function parseJunit(xml: string): TestCase[] {
  const cases: TestCase[] = [];
  for (const [, head, , body] of xml.matchAll(/<testcase\b([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const { file, name, classname, assertions } = attributes(head!);
    if (file === undefined || name === undefined || assertions === undefined) throw new Error(`a test case lacks an attribute: ${head}`);
    const titles = [...(classname === undefined || classname === "" ? [] : classname.split(" > ").reverse()), name];
    cases.push({ file, name: titles.join(" > "), outcome: outcomeOf(body ?? ""), assertions: Number(assertions) });
  }
  return cases;
}

function outcomeOf(body: string): TestCase["outcome"] {
  if (/<(?:failure|error)\b/.test(body)) return "failed";
  const skipped = /<skipped\b([^>]*)>/.exec(body);
  if (skipped === null) return "passed";
  return attributes(skipped[1]!)["message"] === "TODO" ? "todo" : "skipped";
}
