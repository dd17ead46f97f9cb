import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import { listen } from "../../api/web-socket-client.ts";
import { NginxEdge } from "../../rigs/nginx-edge.ts";
import { describeWith } from "../../runner/components.ts";
import { type Relay, startRelay } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { authority } from "../../transport/outbound/certificates.ts";

describeWith(["nginx", "openssl"], "the API behind an nginx that speaks TLS", () => {
  const files = temporaryDirectory();
  let relay: Relay;
  let edge: NginxEdge;
  let token: string;
  let ca: string;

  beforeAll(async () => {
    relay = await startRelay();
    const given = ["--port", "0", "--behind-proxy", "--allow-host", "localhost"];
    const { url, token_file } = await relay.json<{ url: string; token_file: string }>("api", "start", ...given);
    token = fs.readFileSync(token_file, "utf8").trim();
    const certificates = authority(files.path);
    ca = fs.readFileSync(certificates.file, "utf8");
    edge = await NginxEdge.start({
      certificate: certificates.issue("edge", "DNS:localhost"),
      port: Number(new URL(url).port),
      location: "/",
    });
  });
  afterAll(async () => {
    await edge[Symbol.asyncDispose]();
    await relay[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  const get = (target: string, headers: Record<string, string> = {}, more: RequestInit = {}) =>
    fetch(`https://localhost:${edge.port}${target}`, { ...more, headers: { authorization: `Bearer ${token}`, ...headers }, tls: { ca } });
  const submit = async (...args: string[]) => (await relay.json<{ job_id: string }>("job", "submit", ...args)).job_id;

  test("lets in who has the token and names a host that is allowed, and nobody else", async () => {
    const refusal = async (headers: Record<string, string>): Promise<unknown> => {
      const answer = await get("/clusters", headers);
      return [answer.status, ((await answer.json()) as { reason?: string }).reason];
    };
    expect(await refusal({})).toEqual([200, undefined]);
    expect(await refusal({ authorization: `Bearer ${token}x` })).toEqual([401, "authentication_required"]);
    expect(await refusal({ host: "evil.example" })).toEqual([403, "host_refused"]);
    expect(await refusal({ origin: "https://evil.example" })).toEqual([403, "origin_refused"]);
    // The proxy has one address, whoever asks it.
    for (let i = 0; i < 70; i++) await (await get("/clusters", { authorization: "Bearer wrong" })).arrayBuffer();
    expect(await refusal({})).toEqual([200, undefined]);
  });

  test("hands on what comes as it comes: events, WebSockets, output", async () => {
    const gate = `${files.path}/gate`;
    const id = await submit("--", "sh", "-c", `echo first; until [ -e ${gate} ]; do sleep 0.05; done; echo second`);
    const at = `/clusters/local/jobs/${id}`;
    const heard = listen(`wss://localhost:${edge.port}${at}/events/ws`, { headers: { authorization: `Bearer ${token}` }, tls: { ca } });
    const until = async (target: string, text: string) => {
      const reader = (await get(target)).body!.getReader();
      for (let got = ""; !got.includes(text); ) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`${target} ended with ${got}`);
        got += Buffer.from(value).toString();
      }
      return reader;
    };
    // The job goes on only when all of this has come.
    const open = [await until(`${at}/events/sse`, "stdout.delta"), await until(`${at}/logs/stdout/content?follow=true`, "first\n")];
    fs.writeFileSync(gate, "");
    expect(await heard).toMatchObject({ code: 1000, reason: "terminal" });
    for (const reader of open) {
      let rest = "";
      for (let next = await reader.read(); !next.done; next = await reader.read()) rest += Buffer.from(next.value).toString();
      expect(rest).toMatch(/second\n|event: terminal/);
    }
  });

  test("keeps ranges and tags, and takes pieces of inputs", async () => {
    const id = await submit("--wait", "--", "seq", "1", "100000");
    const content = `/clusters/local/jobs/${id}/logs/stdout/content`;
    const part = await get(content, { range: "bytes=2-5" });
    expect([part.status, await part.text(), part.headers.get("content-range")]).toEqual([206, "2\n3\n", "bytes 2-5/588895"]);
    expect((await get(content, { "if-none-match": part.headers.get("etag")! })).status).toBe(304);
    const piece = Buffer.alloc(1024 * 1024, 7);
    const sha256 = new Bun.CryptoHasher("sha256").update(piece).digest("hex");
    const key = { sha256, size_bytes: piece.length };
    expect((await get("/clusters/local/input-uploads", {}, { method: "POST", body: JSON.stringify(key) })).status).toBe(201);
    const put = await get(
      `/clusters/local/input-uploads/${sha256}/content?size_bytes=${piece.length}&offset=0`,
      {},
      { method: "PUT", body: piece },
    );
    expect([put.status, await put.json()]).toMatchObject([200, { state: "complete", offset: piece.length }]);
  });
});
