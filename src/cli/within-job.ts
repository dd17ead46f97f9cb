import fs from "node:fs";
import { DesktopClient } from "../api/client/desktop-client.ts";
import { type Door, HttpPeer, type Turn } from "../api/client/http-peer.ts";
import { ClusterClient } from "../api/client.ts";
import type { ClusterEntry } from "../config/cluster-entry.ts";

/** The job in which a command runs, and where its worker is. */
export interface Surroundings {
  readonly cluster: string;
  /** Socket of that worker; nothing is there on another host. */
  readonly socket: string;
  /** The registered clusters, from their file. */
  readonly registered: () => Promise<readonly ClusterEntry[]>;
}

/**
 * What a command within a job talks to: the worker that runs the job itself, so that no daemon is needed, which a job could not start; and the daemon, where
 * one runs, for everything else.
 */
export class WithinJob extends DesktopClient {
  constructor(
    private readonly daemon: Door,
    private readonly around: Surroundings,
  ) {
    super(daemon);
  }

  override cluster(name: string, turn: Turn | null = null): ClusterClient {
    const { cluster, socket } = this.around;
    if (name !== cluster || !fs.existsSync(socket)) return super.cluster(name, turn);
    const { ending } = this.daemon;
    const door: Door = {
      address: () => ({ kind: "unix", path: socket }),
      reopen: () => Promise.resolve(false),
      ...(ending === undefined ? {} : { ending }),
    };
    return new ClusterClient(name, new HttpPeer(door, "", undefined, turn));
  }

  override clusters(): Promise<ClusterEntry[]> {
    return this.around.registered().then((entries) => [...entries]);
  }

  override async clusterEntry(name: string): Promise<ClusterEntry> {
    const found = (await this.clusters()).find((one) => one.name === name);
    return found ?? super.clusterEntry(name);
  }
}
