import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { Ledger } from "../../../src/transport/ledger.ts";
import { connectOpenSsh } from "../../../src/transport/ssh/openssh/connect.ts";
import { thisAccount } from "./this-account.ts";

/** Holds a connection until it is killed. */
const [directory, agentSocket] = process.argv.slice(2) as [string, string];
await connectOpenSsh(
  {
    entry: { cluster: "rig", host: "login", hostKeyPins: [] },
    purpose: "connect",
    attending: { requestedBy: "clio-relay connect rig", signal: new AbortController().signal },
    prompter: { ask: () => Promise.reject(new Error("nothing should be asked")) },
    ledger: new Ledger(`${directory}/ledger`, systemClock),
    config: {
      account: thisAccount(),
      sshProgram: "ssh",
      configFile: `${directory}/config`,
      variables: { PATH: process.env["PATH"], HOME: directory, SHELL: "/bin/sh" },
      directory,
    },
    agentSocket,
    keyRing: new Map(),
    notice: () => undefined,
  },
  { askpass: ["false"], privateDirectory: directory },
);
console.log("open");
