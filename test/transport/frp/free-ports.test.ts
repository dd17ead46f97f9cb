import { expect, test } from "bun:test";
import path from "node:path";
import { freePorts } from "../../../src/transport/frp/free-ports.ts";
import { describeWith } from "../../runner/components.ts";

test("ports that are free are as many different ones as are wanted", async () => {
  for (let round = 0; round < 50; round++) {
    const ports = await freePorts(40);
    expect(new Set(ports).size).toBe(40);
    for (const port of ports) expect(port).toBeGreaterThan(0);
  }
});

describeWith(["netns"], "a machine whose ports are used up", () => {
  test("is a failure of the way, and can be tried again", async () => {
    const script = `import { freePorts } from ${JSON.stringify(path.resolve(import.meta.dir, "../../../src/transport/frp/free-ports.ts"))};
await freePorts(4).catch((error) => console.log(error.code, error.message));`;
    const few = "ip link set lo up; sysctl -qw net.ipv4.ip_local_port_range='50000 50001'";
    const child = Bun.spawn(["unshare", "-n", "sh", "-c", `${few}; exec "$0" -e "$1"`, process.execPath, script], { stdout: "pipe" });
    expect((await child.stdout.text()).trim()).toBe("frp_unreachable this machine has no free port for frpc (EADDRINUSE)");
  });
});
