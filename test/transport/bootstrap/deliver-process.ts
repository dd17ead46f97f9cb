import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { deliver } from "../../../src/transport/bootstrap/install.ts";
import { program, remoteAt } from "./host.ts";

/** The desktop of a test that kills it: sends a program to a home, slowly, and says what is on its way. */
const home = process.argv[2]!;
const artifact = program("1.1.0", { filler: 6_000_000 });
const slow = {
  ...artifact,
  async *read(offset: number) {
    for await (const chunk of artifact.read(offset)) {
      yield chunk;
      await Bun.sleep(5);
    }
  },
};
await deliver(remoteAt(home), slow, { home: null, signal: new AbortController().signal }, systemClock, {
  onSent: (bytes) => console.log(`sent ${bytes}`),
  onThere: () => console.log("there"),
});
console.log("done");
