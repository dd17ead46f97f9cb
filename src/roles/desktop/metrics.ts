import type { LinkStatus } from "../../api/desktop/link-views.ts";
import type { ListenerStatus } from "../../api/desktop/listener-views.ts";
import { LINK_STATES } from "../../domain/link.ts";
import { addProcess } from "../../lib/system/process-metrics.ts";
import { Exposition, type Sample } from "../../lib/text/exposition.ts";

/** What there is to be told of a daemon. */
export interface DesktopNumbers {
  readonly version: string;
  /** Requests that are being forwarded. */
  readonly forwarding: number;
  readonly links: readonly LinkStatus[];
  /** Connections that this process dialed, by cluster. */
  readonly dials: ReadonlyMap<string, number>;
  readonly listener: ListenerStatus;
}

/** The text of /metrics; see docs/metrics.md. */
export function desktopMetrics({ version, forwarding, links, dials, listener }: DesktopNumbers): string {
  const ofLinks = (value: (link: LinkStatus) => number | null): Sample[] =>
    links.flatMap((link) => {
      const number = value(link);
      return number === null ? [] : [[{ cluster: link.cluster }, number] as const];
    });
  const out = new Exposition()
    .add("clio_relay_desktop_build_info", "gauge", "Version, of a number that is 1", [[{ version }, 1]])
    .one("clio_relay_desktop_requests_in_flight", "gauge", "Requests that are being forwarded", forwarding)
    .add(
      "clio_relay_link_state",
      "gauge",
      "1 for the state that a link is in, 0 for the others",
      links.flatMap(({ cluster, state }) => LINK_STATES.map((one) => [{ cluster, state: one }, one === state ? 1 : 0] as const)),
    )
    .add(
      "clio_relay_link_round_trip_seconds",
      "gauge",
      "The last round trip",
      ofLinks(({ round_trip_ms }) => (round_trip_ms === null ? null : round_trip_ms / 1_000)),
    )
    .add(
      "clio_relay_link_received_bytes_total",
      "counter",
      "Bytes that came on the present connection",
      ofLinks(({ bytes_in }) => bytes_in),
    )
    .add(
      "clio_relay_link_sent_bytes_total",
      "counter",
      "Bytes that went out on the present connection",
      ofLinks(({ bytes_out }) => bytes_out),
    )
    .add(
      "clio_relay_link_dials_total",
      "counter",
      "Connections that were dialed, whatever became of them",
      ofLinks(({ cluster, mode }) => (mode === "local" ? null : (dials.get(cluster) ?? 0))),
    );
  const { connections, refused } = listener;
  out.one("clio_relay_api_listening", "gauge", "Whether the API is served on TCP", listener.state === "listening" ? 1 : 0);
  if (connections !== null) {
    out.add("clio_relay_api_connections", "gauge", "Connections to the API on TCP, by whether they have shown the token", [
      [{ kind: "proven" }, connections.proven],
      [{ kind: "unproven" }, connections.unproven],
    ]);
  }
  if (listener.state !== "stopped") {
    out.add(
      "clio_relay_api_refused_total",
      "counter",
      "Connections and first requests that the API on TCP refused, by reason",
      Object.entries(refused).map(([reason, times]) => [{ reason }, times]),
    );
  }
  return addProcess(out).text();
}
