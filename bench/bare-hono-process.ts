/** Answers one document on a Unix socket, with Hono and nothing behind it: `bare-hono-process.ts SOCKET DOCUMENT`. */
import { Hono } from "hono";

const [unix = "", document = "{}"] = process.argv.slice(2);
const app = new Hono();
app.get("/jobs/:id", (c) => c.json(JSON.parse(document)));
Bun.serve({ unix, fetch: app.fetch });
process.stdout.write("ready\n");
