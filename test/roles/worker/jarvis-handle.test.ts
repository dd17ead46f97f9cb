import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { readHandle } from "../../../src/roles/worker/engines/jarvis/handle.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";

const ID = "jarvis_0123456789abcdef0123456789abcdef";

test.each([
  ["one line", "Loaded pipeline: x\nError: no such thing\n", "Error: no such thing"],
  [
    "with a place",
    'Error: while constructing a mapping\n  in "/p.yaml", line 1, column 1\nfound unhashable key\n  in "/p.yaml", line 2, column 3\n',
    'Error: while constructing a mapping in "/p.yaml", line 1, column 1 found unhashable key in "/p.yaml", line 2, column 3',
  ],
  ["before the help of a command", "Error: it is over\n\nCommand: ppl run\n      (default: False)\n", "Error: it is over"],
  ["the last one", "Error: first\n\nError: second\n", "Error: second"],
  ["none", "Loaded\n  bye \n\n", "bye"],
])("JARVIS' message: %s", (_what, log, expected) => {
  using place = temporaryDirectory();
  fs.writeFileSync(path.join(place.path, "stdout.log"), log);
  expect(readHandle(place.path, ID, log.length).line).toBe(expected);
});
