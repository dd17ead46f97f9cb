import { describe, expect, test } from "bun:test";
import { initialized } from "../../cli/source-relay.ts";

const VARIABLES = ["HTTP_PROXY", "http_proxy", "ALL_PROXY"];

describe.each(["tcp", "unix"])("%s: a proxy in the environment", (listen) => {
  test.each(VARIABLES)("%s hears nothing of requests to this machine", async (name) => {
    const heard: string[] = [];
    const proxy = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        heard.push(`${request.method} ${request.url}`);
        return new Response("from the proxy");
      },
    });
    try {
      await using relay = await initialized({ CLIO_RELAY_LOCAL_LISTEN: listen, [name]: String(proxy.url) });
      // What the variable does to a request that says nothing of proxies.
      const plain = Bun.spawn([process.execPath, "-e", "await (await fetch('http://127.0.0.1:9/plain')).text()"], {
        env: relay.environment,
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
      });
      await plain.exited;
      expect(heard).toEqual(["GET http://127.0.0.1:9/plain"]);
      heard.length = 0;
      expect(await relay.ok("cluster", "list")).toBe("local\tlocal\t3\t2");
      expect(await relay.run(["worker", "status"])).toMatchObject({ code: 5 });
      expect(await relay.ok("desktop", "stop")).toMatch(/^stopped process \d+$/);
      expect(heard).toEqual([]);
    } finally {
      await proxy.stop(true);
    }
  });
});
