import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { generatedDocs } from "../../scripts/generated-docs.ts";

const docs = path.resolve(import.meta.dir, "../../docs");
const pages = await generatedDocs();

test.each(Object.keys(pages))("docs/%s is what the code says (bun scripts/generated-docs.ts writes it)", (name) => {
  expect(fs.readFileSync(path.join(docs, name), "utf8")).toBe(pages[name]!);
});

const DOCUMENTS = ["openapi.json", "openapi-desktop.json"];

test.each(DOCUMENTS)("every reference in %s resolves", (name) => {
  const document = JSON.parse(pages[name]!) as Record<string, unknown>;
  const references = [...pages[name]!.matchAll(/"\$ref": "#\/([^"]*)"/g)].map((match) => match[1]!);
  expect(references.length).toBeGreaterThan(10);
  for (const reference of new Set(references)) {
    const target = reference.split("/").reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], document);
    expect([reference, typeof target]).toEqual([reference, "object"]);
  }
});

test.each(DOCUMENTS)("every operation of %s has an id of its own, a summary and a success", (name) => {
  const { paths } = JSON.parse(pages[name]!) as {
    paths: Record<string, Record<string, { operationId: string; summary: string; responses: object }>>;
  };
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  expect(operations.length).toBeGreaterThan(15);
  expect(new Set(operations.map((op) => op.operationId)).size).toBe(operations.length);
  for (const op of operations) {
    expect(op.summary.length).toBeGreaterThan(5);
    expect(Object.keys(op.responses).some((status) => /^(?:2|101)/.test(status))).toBe(true);
  }
});
