import type { DesktopClient } from "../api/desktop-client.ts";
import type { ClusterEntry } from "../config/cluster-entry.ts";
import type { Metadata } from "../domain/primitives.ts";
import { sha256Hex } from "../lib/digest.ts";
import { type Listed, listTools, TOOLS } from "./catalogue.ts";
import { Clusters } from "./clusters.ts";
import { JobWatch } from "./job-watch.ts";
import type { EndOf } from "./tasks/projection.ts";
import { Tasks } from "./tasks/projection.ts";
import type { Profile, Tool } from "./tool.ts";

export interface ServiceOptions {
  readonly desktop: DesktopClient;
  readonly profile: Profile;
  readonly version: string;
  /** Milliseconds of a clock that never steps. */
  readonly now: () => number;
  /** Tools in place of the program's own. */
  readonly tools?: readonly Tool[];
  /** How jobs of some kinds answer their calls when they have ended. */
  readonly endOf?: EndOf;
  /** What the metadata of a submission to a cluster say of where it comes from. */
  readonly origin?: (cluster: string) => Metadata;
  /** Something of ours went wrong, which no answer says. */
  readonly onFault?: (error: Error) => void;
}

/** What every connection of one endpoint shares. */
export class McpService {
  readonly profile: Profile;
  readonly version: string;
  readonly clusters: Clusters;
  readonly tasks: Tasks;
  readonly watch: JobWatch;
  readonly tools: readonly Tool[];
  readonly now: () => number;
  readonly onFault: (error: Error) => void;

  constructor({ desktop, profile, version, now, tools = TOOLS, endOf, origin = () => ({}), onFault = () => undefined }: ServiceOptions) {
    this.profile = profile;
    this.version = version;
    this.now = now;
    this.tools = tools;
    this.onFault = onFault;
    this.clusters = new Clusters(desktop, now, origin);
    this.tasks = new Tasks(this.clusters, endOf);
    this.watch = new JobWatch();
  }

  /** The tools of the profile. Where the daemon does not answer, the clusters are not named. No cluster is asked. */
  async listed(signal: AbortSignal): Promise<{ readonly tools: Listed[]; readonly revision: string }> {
    const entries: readonly ClusterEntry[] = await this.clusters.entries(signal).catch(() => []);
    const tools = listTools(this.profile, entries, this.tools);
    return { tools, revision: sha256Hex(JSON.stringify(tools)) };
  }

  close(): void {
    this.watch.close();
  }
}
