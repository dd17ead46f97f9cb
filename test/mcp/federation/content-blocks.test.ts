import { expect, test } from "bun:test";
import { isCallToolResult } from "@modelcontextprotocol/client";
import { blocksOf } from "../../../src/mcp/federation/content-blocks.ts";

const WHOLE = [
  {
    type: "text",
    text: "t",
    annotations: { audience: ["user"], priority: 0.5, lastModified: "2026-01-02T03:04:05+02:00" },
    _meta: { a: 1 },
  },
  { type: "image", data: "AAA", mimeType: "image/png", further: 7 },
  { type: "audio", data: "AAAA", mimeType: "audio/wav" },
  {
    type: "resource_link",
    uri: "x:y",
    name: "n",
    title: "t",
    description: "d",
    mimeType: "m",
    size: 1,
    icons: [{ src: "x:i", theme: "dark" }],
  },
  { type: "resource", resource: { uri: "x:y", text: "t", mimeType: "m", _meta: {} } },
  { type: "resource", resource: { uri: "x:y", blob: "AA==" } },
];

test("blocks of the protocol are handed on as they are", () => {
  expect(blocksOf(WHOLE)).toEqual(WHOLE);
  for (const none of [undefined, null, []]) expect(blocksOf(none)).toEqual([]);
  // A list was left out.
  for (const one of ["t", { type: "text", text: "t" }]) expect(blocksOf(one)).toEqual([{ type: "text", text: "t" }]);
});

test("what only describes a block, and does not fit, is left out", () => {
  const wrong = { annotations: { audience: ["x"] }, _meta: 7 };
  expect(
    blocksOf([
      { type: "text", text: "t", ...wrong },
      { type: "text", text: "t", annotations: { priority: 99 } },
      { type: "text", text: "t", annotations: { lastModified: "yesterday" } },
      { type: "resource_link", uri: "x:y", name: "n", title: 1, description: null, mimeType: 1, size: "1", icons: [{}], ...wrong },
      { type: "resource", resource: { uri: "x:y", text: "t", mimeType: 1, _meta: [] }, ...wrong },
    ]),
  ).toEqual([
    { type: "text", text: "t" },
    { type: "text", text: "t" },
    { type: "text", text: "t" },
    { type: "resource_link", uri: "x:y", name: "n" },
    { type: "resource", resource: { uri: "x:y", text: "t" } },
  ]);
});

test("a client takes whatever comes of it", () => {
  const odd = [
    ...[
      7,
      null,
      "x",
      [],
      {},
      { type: 1 },
      { type: "toString" },
      { type: "text" },
      { type: "text", text: 1 },
      { type: "video", url: "x:y" },
    ],
    ...[
      { type: "image", data: "!!", mimeType: "image/png" },
      { type: "image", data: "AAAA" },
      { type: "audio", data: "A", mimeType: "m" },
    ],
    ...[{ type: "resource" }, { type: "resource", resource: { uri: "x" } }, { type: "resource", resource: { uri: "x", blob: "?" } }],
    ...WHOLE.map((block) => ({ ...block, annotations: [], _meta: "m", icons: 1, size: null, title: {}, mimeType: block.mimeType ?? 1 })),
  ];
  const content = blocksOf(odd);
  expect(content).toHaveLength(odd.length);
  expect(content.filter((block) => !isCallToolResult({ content: [block] }))).toEqual([]);
});
