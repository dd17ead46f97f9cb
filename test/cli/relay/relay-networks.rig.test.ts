import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { ThreeNetworks } from "../../rigs/three-networks.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { authority } from "../../transport/outbound/certificates.ts";
import { MeetingDesk, TestRelayHost } from "../relay-desk.ts";
import { farLink } from "../ssh-desk.ts";

describeWith(["netns", "openssl"], "a desk and a cluster that reach nothing but a relay-host", () => {
  const files = temporaryDirectory();
  let networks: ThreeNetworks;
  let host: TestRelayHost;
  let both: MeetingDesk;

  beforeAll(async () => {
    networks = new ThreeNetworks();
    const [near, far] = [networks.middleFrom("desk"), networks.middleFrom("cluster")];
    const ca = authority(files.path);
    const certificate = ca.issue("relay", `IP:${near},IP:${far}`);
    host = await TestRelayHost.start({ certificate, address: "0.0.0.0", before: networks.inside("middle") });
    both = await MeetingDesk.start({
      url: `wss://${far}:${host.port}`,
      deskUrl: `tls://${near}:${host.port}`,
      env: { CLIO_RELAY_CA_FILE: ca.file },
      before: { cluster: networks.inside("cluster"), desk: networks.inside("desk") },
    });
    await both.up();
  });
  afterAll(async () => {
    await both[Symbol.asyncDispose]();
    await host[Symbol.asyncDispose]();
    networks[Symbol.dispose]();
    files[Symbol.dispose]();
  });

  test("meet there, one by WebSocket and one by TLS, and cannot reach each other", async () => {
    const job = await both.desk.submit("--wait", "--", "sh", "-c", "echo over there");
    expect(await both.desk.ok("job", "read-log", job)).toBe("over there");
    const other = networks.middleFrom("cluster");
    expect([networks.reaches("desk", networks.middleFrom("desk")), networks.reaches("desk", other.replace(/1$/, "2"))]).toEqual([
      true,
      false,
    ]);
  });

  test("a desk that is carried to another network is back by itself, and follows its job on", async () => {
    const gate = path.join(files.path, "moved");
    const job = await both.desk.submit("--", "sh", "-c", `echo before; until [ -e ${gate} ]; do sleep 0.1; done; echo after`);
    const reading = both.desk.start(["job", "read-log", job, "--follow"]);
    let read = "";
    for await (const chunk of reading.stdout) {
      if (read === "") {
        networks.moveDesk();
        fs.writeFileSync(gate, "");
      }
      read += Buffer.from(chunk).toString("utf8");
    }
    expect([await reading.exited, read]).toEqual([0, "before\nafter\n"]);
    const { state, ledger } = await farLink(both.desk);
    expect([state, ledger.filter(({ outcome }) => outcome === "open").length]).toEqual(["up", 2]);
  });
});
