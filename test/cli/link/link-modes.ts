import { expect } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { lineOfPublicKey, publicKeyFromLine } from "../../../src/transport/session/keys.ts";
import { startStun } from "../../rigs/frp/stun.ts";
import { userFile } from "../../rigs/sshd.ts";
import type { ComponentName } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { FrpSite } from "../frp-desk.ts";
import { MeetingDesk, TestRelayHost } from "../relay-desk.ts";
import type { SourceRelay } from "../source-relay.ts";
import { FarSite, farLink } from "../ssh-desk.ts";

/** What the other side lets in, besides who is let in already. */
function withClients(before: string | null, lines: readonly string[]): string {
  const known = before === null ? [] : (JSON.parse(before) as { clients: unknown[] }).clients;
  const added = lines.map((line) => ({
    key: lineOfPublicKey(publicKeyFromLine(line)),
    comment: "",
    added_at: new Date().toISOString(),
    by: "bootstrap",
    ttl_seconds: null,
    expires_at: null,
  }));
  return JSON.stringify({ schema_version: "clio-relay.link-clients.v1", clients: [...known, ...added] });
}

/** A cluster `far` that is reached in one of the modes. */
export interface Reached extends AsyncDisposable {
  readonly relay: SourceRelay;
  /** Let further keys in. */
  letIn(lines: readonly string[]): void;
  /** That nothing was dialed since the link is up. */
  undisturbed(): Promise<void>;
}

export interface Mode {
  readonly needs: readonly ComponentName[];
  /** Verbs that work on the login node itself, where none is known. */
  readonly without: RegExp | null;
  /** What the worker says to who wants a pairing code. */
  readonly pairing: number;
  start(): Promise<Reached>;
}

/** Met through a frps, or from peer to peer, and set up over an sshd that is gone by then. */
const throughFrps = (carrier: "frp-stcp" | "frp-xtcp"): Mode => ({
  needs: ["frp", "sshd", "ssh"],
  without: /^cluster (?:probe|endpoint-service-status)$/,
  // It is at no relay-host.
  pairing: 409,
  async start() {
    const stun = carrier === "frp-xtcp" ? await startStun() : null;
    const far = await FrpSite.start({ options: stun === null ? [] : ["--direct-transport", "--frp-stun-server", stun.at] });
    await far.up();
    const { site, relay } = far;
    // What was needed of it is done.
    await relay.ok("disconnect", "far");
    const connections = site.sshd.connections();
    await site.sshd[Symbol.asyncDispose]();
    await relay.ok("connect", "far");
    await eventually(async () => (await farLink(relay)).carrier === carrier, { what: `a link over ${carrier}` });
    return {
      relay,
      letIn(lines) {
        const name = ".local/share/clio-relay/core/far/link-clients.json";
        userFile(site.user, name, withClients(fs.readFileSync(path.join(site.user.home, name), "utf8"), lines), 0o600);
      },
      async undisturbed() {
        const { state, ssh_connections_since_bring_up, carrier: now } = await farLink(relay);
        expect([state, ssh_connections_since_bring_up, connections, now]).toEqual(["up", 0, 1, carrier]);
      },
      async [Symbol.asyncDispose]() {
        await far[Symbol.asyncDispose]();
        stun?.[Symbol.dispose]();
      },
    };
  },
});

/** A way to have `far`, up, in each of the modes that lead to another machine. */
export const MODES: Readonly<Record<string, Mode>> = {
  ssh: {
    needs: ["sshd", "ssh"],
    without: null,
    // It is at no relay-host.
    pairing: 409,
    async start() {
      const site = await FarSite.start();
      const relay = await site.desk();
      // Started from here, so that it is the installation's own and may be stopped from here.
      await relay.ok("worker", "start");
      await relay.ok("connect", "far");
      expect(site.worker.cluster).toBe("far");
      return {
        relay,
        letIn: (lines) => userFile(site.user, ".local/share/clio-relay/core/far/link-clients.json", withClients(null, lines), 0o600),
        // The ledger and sshd's own log agree on the one connection.
        async undisturbed() {
          const link = await farLink(relay);
          expect([link.state, link.ssh_connections_since_bring_up, link.ledger.length, site.sshd.connections()]).toEqual(["up", 0, 1, 1]);
        },
        async [Symbol.asyncDispose]() {
          await relay[Symbol.asyncDispose]();
          await site[Symbol.asyncDispose]();
        },
      };
    },
  },
  relay: {
    needs: ["linux"],
    without: /^cluster (?:probe|endpoint-service-status)$/,
    pairing: 200,
    async start() {
      const host = await TestRelayHost.start();
      const both = await MeetingDesk.start({ url: `ws://127.0.0.1:${host.port}` });
      await both.up();
      return {
        relay: both.desk,
        letIn(lines) {
          const file = path.join(both.cluster.home, "core", "far", "link-clients.json");
          fs.writeFileSync(file, withClients(fs.readFileSync(file, "utf8"), lines), { mode: 0o600 });
        },
        // One connection to the relay-host; ssh was never needed.
        async undisturbed() {
          const { state, ssh_connections_since_bring_up, ledger } = await farLink(both.desk);
          expect([state, ssh_connections_since_bring_up, ledger.map(({ client }) => client)]).toEqual(["up", 0, ["relay"]]);
        },
        async [Symbol.asyncDispose]() {
          await both[Symbol.asyncDispose]();
          await host[Symbol.asyncDispose]();
        },
      };
    },
  },
  "frp-stcp": throughFrps("frp-stcp"),
  "frp-xtcp": throughFrps("frp-xtcp"),
};
