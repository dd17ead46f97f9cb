import type { HostTaskName, HostTaskOptions } from "../../api/desktop/host-views.ts";
import { RelayError } from "../../domain/errors.ts";
import { attend } from "../attended/attend.ts";
import type { Call } from "../verb.ts";

/** Do something on the host of a cluster's worker, with the person at this terminal. @param command for the ledger, without the program's name */
export async function onHost<N extends HostTaskName, T>(
  call: Pick<Call, "io" | "relay" | "noInput">,
  cluster: string,
  {
    task,
    options,
    command,
    givenUp,
  }: { readonly task: N; readonly options: HostTaskOptions<N>; readonly command: string; readonly givenUp?: string },
): Promise<T> {
  const { mode } = await call.relay.clusterEntry(cluster);
  if (mode === "local") {
    const again = `clio-relay worker stop --cluster ${cluster} && clio-relay worker start --cluster ${cluster}`;
    const hint = task === "bootstrap" || task === "service-restart" ? again : undefined;
    throw new RelayError("configuration_error", `${cluster} is on this machine: there is no other host to work on`, { cluster }, hint);
  }
  return attend<T>(call, {
    cluster,
    command: `${command} ${cluster}`,
    ...(givenUp === undefined ? {} : { givenUp }),
    start: (request, signal) => call.relay.desktop.host<N, T>(cluster, task, options, request, signal),
  });
}
