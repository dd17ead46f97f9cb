import { expect, test } from "bun:test";
import { freePorts } from "../../../src/transport/frp/free-ports.ts";

test("ports that are free are as many different ones as are wanted", async () => {
  for (let round = 0; round < 50; round++) {
    const ports = await freePorts(40);
    expect(new Set(ports).size).toBe(40);
    for (const port of ports) expect(port).toBeGreaterThan(0);
  }
});
