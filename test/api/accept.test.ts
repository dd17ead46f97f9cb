import { expect, test } from "bun:test";
import { qualityOf } from "../../src/api/accept.ts";

test.each([
  [undefined, 1, 1],
  ["", 1, 1],
  ["*/*", 1, 1],
  ["application/json", 1, 0],
  ["application/json, text/plain, */*", 1, 1],
  ["application/json;q=0.5, application/octet-stream", 0.5, 1],
  ["Application/JSON ; Q=0.5, */*;q=0.1", 0.5, 0.1],
  ["application/*;q=0.2", 0.2, 0.2],
  ["text/html", 0, 0],
  ["application/json;q=0", 0, 0],
  ["application/json;charset=utf-8", 1, 0],
  // Not a field that can be read.
  ["json", 1, 1],
  ["application/json;q=2", 1, 1],
])("Accept: %p wants JSON by %d, bytes by %d", (accept, document, bytes) => {
  expect([qualityOf(accept, "application/json"), qualityOf(accept, "application/octet-stream")]).toEqual([document, bytes]);
});
