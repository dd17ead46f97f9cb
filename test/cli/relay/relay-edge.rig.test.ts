import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { NginxEdge } from "../../rigs/nginx-edge.ts";
import { ConnectProxy } from "../../rigs/proxy/connect-proxy.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { authority } from "../../transport/outbound/certificates.ts";
import { MeetingDesk, TestRelayHost } from "../relay-desk.ts";
import { farLink } from "../ssh-desk.ts";

const PASSWORD = "p-ssw0rd-of-a-test";

describeWith(["nginx", "openssl"], "a relay-host behind an HTTPS edge, a desk behind a proxy that wants a password", () => {
  const files = temporaryDirectory();
  let host: TestRelayHost;
  let edge: NginxEdge;
  let proxy: ConnectProxy;
  let both: MeetingDesk;

  beforeAll(async () => {
    const ca = authority(files.path);
    const certificate = ca.issue("edge", "DNS:relay.example,DNS:localhost");
    host = await TestRelayHost.start();
    edge = await NginxEdge.start({ certificate, port: host.port });
    proxy = await ConnectProxy.start({
      credentials: `desk:${PASSWORD}`,
      resolve: (target) => (target === `relay.example:${edge.port}` ? { host: "127.0.0.1", port: edge.port } : null),
    });
    both = await MeetingDesk.start({
      url: `wss://localhost:${edge.port}/relay`,
      deskUrl: `wss://relay.example:${edge.port}/relay`,
      env: {
        SSL_CERT_FILE: ca.file,
        HTTPS_PROXY: `http://desk:${PASSWORD}@127.0.0.1:${proxy.port}`,
        NO_PROXY: "localhost",
      },
    });
    await both.up();
  });
  afterAll(async () => {
    await both[Symbol.asyncDispose]();
    await proxy[Symbol.asyncDispose]();
    await edge[Symbol.asyncDispose]();
    await host[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  test("megabytes come through as they are, by the proxy for the desk and past it for the worker", async () => {
    const script = "mkdir -p out; head -c 20000000 /dev/urandom > out/big; sha256sum < out/big | cut -c1-64";
    const job = await both.desk.submit("--output", "out/*", "--wait", "--", "sh", "-c", script);
    const { artifacts } = await both.desk.json<{ artifacts: { artifact_id: string; size_bytes: number }[] }>("job", "list-artifacts", job);
    const big = artifacts.find(({ size_bytes }) => size_bytes === 20_000_000);
    await both.desk.ok("job", "read-artifact", big!.artifact_id, "-o", "big");
    const digest = createHash("sha256")
      .update(fs.readFileSync(path.join(both.desk.directory, "big")))
      .digest("hex");
    expect(digest).toBe(await both.desk.ok("job", "read-log", job));
    const { ledger } = await farLink(both.desk);
    expect(ledger).toMatchObject([{ target: `wss://relay.example:${edge.port}/relay`, via: [`http://127.0.0.1:${proxy.port}`] }]);
    expect(new Set(proxy.asked.map(({ target }) => target))).toEqual(new Set([`relay.example:${edge.port}`]));
  });

  test("an edge that is killed, and a proxy that hangs up, are got over", async () => {
    await edge.restart();
    await eventually(async () => (await farLink(both.desk)).state === "up", { what: "a link over the new edge" });
    await both.desk.submit("--wait", "--", "true");
    proxy.cut();
    await eventually(async () => (await farLink(both.desk)).state === "up", { what: "a link over the proxy" });
    await both.desk.submit("--wait", "--", "true");
    expect((await farLink(both.desk)).ledger.filter(({ outcome }) => outcome === "open").length).toBe(3);
  });

  test("nothing that is written down has the password", async () => {
    const wrong = { HTTPS_PROXY: `http://desk:${PASSWORD}-not@127.0.0.1:${proxy.port}` };
    await both.desk.ok("disconnect", "far");
    const refused = await both.desk.run(["connect", "far"], { env: wrong });
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining("does not take the user and password")]);
    const texts = [...new Bun.Glob("**/*").scanSync({ cwd: both.desk.home, onlyFiles: true })].map((file) =>
      fs.readFileSync(path.join(both.desk.home, file), "latin1"),
    );
    expect(texts.length).toBeGreaterThan(3);
    expect([...texts, refused.stderr, refused.stdout].filter((text) => text.includes(PASSWORD))).toEqual([]);
  });
});
