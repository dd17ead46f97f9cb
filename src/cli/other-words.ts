/** Words that other programs use for what a verb of ours does, most likely meaning first. */
const OTHER_WORDS: Readonly<Record<string, readonly string[]>> = {
  logs: ["read-log"],
  log: ["logs", "read-log"],
  output: ["read-log"],
  stdout: ["read-log"],
  stderr: ["read-log"],
  cat: ["read-log"],
  artifacts: ["list-artifacts"],
  artifact: ["read-artifact"],
  files: ["list-artifacts"],
  outputs: ["list-artifacts"],
  results: ["list-artifacts"],
  download: ["fetch"],
  collect: ["fetch"],
  get: ["fetch", "show"],
  show: ["show", "status"],
  info: ["show", "status"],
  describe: ["show", "status"],
  inspect: ["show", "status"],
  ls: ["list"],
  ps: ["list", "status"],
  kill: ["cancel", "stop"],
  stop: ["cancel"],
  abort: ["cancel", "stop"],
  follow: ["watch"],
  tail: ["watch", "logs"],
  create: ["submit", "add"],
  run: ["submit", "start"],
  delete: ["cancel", "remove"],
  rm: ["remove", "cancel"],
};

/** The verb among `known` that a word of other programs stands for, or null. */
export function verbMeant(word: string, known: readonly string[]): string | null {
  const meanings = Object.hasOwn(OTHER_WORDS, word) ? OTHER_WORDS[word]! : [];
  return meanings.find((verb) => known.includes(verb)) ?? null;
}
