import { expect, test } from "bun:test";
import { Hono } from "hono";
import { mount } from "../../src/api/operation.ts";
import { openApiRoute } from "../../src/api/routes/open-api.ts";

function served(document: () => Promise<unknown>): () => Promise<Response> {
  const app = new Hono();
  mount(app, [openApiRoute("openApi", "This document", document)]);
  return async () => app.request("/openapi.json");
}

test("the document is made once, however many ask for it, and each gets all of it", async () => {
  let made = 0;
  const get = served(async () => {
    made += 1;
    await Bun.sleep(1);
    return { openapi: "3.1.0", made };
  });
  const answers = [...(await Promise.all([get(), get(), get()])), await get()];
  expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual(answers.map(() => ({ openapi: "3.1.0", made: 1 })));
  expect(answers.map(({ headers }) => headers.get("content-type"))).toEqual(answers.map(() => "application/json"));
});

test("one that could not be made is tried again", async () => {
  let tries = 0;
  const get = served(async () => {
    tries += 1;
    if (tries === 1) throw new Error("no memory");
    return { openapi: "3.1.0" };
  });
  expect((await get()).status).toBe(500);
  expect([(await get()).status, tries]).toEqual([200, 2]);
});
