import { type ErrorData, RelayError } from "../domain/errors.ts";
import { type ChannelRequest, doubtOf } from "./http/request-head.ts";

/** Of a failure: the request never left this machine. */
export const NOT_SENT: ErrorData = { sent: false };

export const linkDown = (cluster: string, what: string, data: ErrorData = {}): RelayError =>
  new RelayError("link_down", what, { cluster, ...data }, `clio-relay connect ${cluster}`);

/** A request that found too many others before it. */
export const clusterBusy = (cluster: string, what: string): RelayError =>
  new RelayError("cluster_busy", `${what}; this one was not sent`, { cluster, ...NOT_SENT });

/** The command that ends a worker which does not end by itself. */
export const killCommand = (cluster: string): string => `clio-relay worker stop --kill --cluster ${cluster}`;

/** A worker whose host, or whose socket, answers for it, while it does not. */
export const workerHangs = (cluster: string): RelayError =>
  new RelayError(
    "link_down",
    `the worker of ${cluster} is there, but does not answer`,
    { cluster },
    `jobs go on when it is replaced: ${killCommand(cluster)} && clio-relay worker start --cluster ${cluster}`,
  );

/** A request that got no answer while others got none either. @param pathAnswers whether at least the other end of the session does */
export const unansweredRequest = (cluster: string, request: ChannelRequest, pathAnswers: boolean): RelayError =>
  pathAnswers ? workerHangs(cluster) : linkDown(cluster, `nothing comes from ${cluster} any more${doubtOf(request)}`);

export const workerNotRunning = (cluster: string, cause: RelayError): RelayError =>
  new RelayError("worker_not_running", `no worker is running for ${cluster}`, { cluster }, `clio-relay worker start --cluster ${cluster}`, {
    cause,
  });

/** @param lost why there is no link; null: that was before this process */
export const needsPerson = (cluster: string, lost: RelayError | null): RelayError =>
  new RelayError(
    "authorization_required",
    lost === null
      ? `the link to ${cluster} was lost before this daemon started, and only you can bring it up`
      : `the link to ${cluster} is down, and only you can bring it up: ${lost.message}`,
    { cluster, ...NOT_SENT },
    `clio-relay connect ${cluster}`,
  );
