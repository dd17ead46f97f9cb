import type { Flags, Positionals, Verb } from "./verb.ts";

/** A verb that is loaded when it is called. The summary is here so that a list of verbs loads none of them. */
export interface Command {
  readonly summary: string;
  /** Known, but not listed: another name of something that is. */
  readonly alias?: true;
  readonly load: () => Promise<{ readonly verb: Verb<Flags, Positionals> }>;
}

type AnyVerb = { readonly verb: Verb<Flags, Positionals> };
const command = (summary: string, load: () => Promise<unknown>): Command => ({ summary, load: load as () => Promise<AnyVerb> });
const alias = (summary: string, load: () => Promise<unknown>): Command => ({ ...command(summary, load), alias: true });

/** Every command: verbs by noun; the verbs below "" stand alone, and a noun may be below another one. */
export const COMMANDS: Readonly<Record<string, Readonly<Record<string, Command>>>> = {
  "": {
    init: command("Make the directories and the cluster `local`", () => import("./init.ts")),
    connect: command("Bring the link to a cluster up", () => import("./connect.ts")),
    disconnect: command("End the link to a cluster; its worker and jobs go on", () => import("./disconnect.ts")),
    "install-frp": command("Install frpc and frps for modes frp-stcp and frp-xtcp", () => import("./install-frp.ts")),
    "mcp-server": command("Serve the clusters to an agent, by MCP", () => import("./mcp-server.ts")),
    "mcp-call": command("Call an MCP server on a cluster once", () => import("./mcp-call.ts")),
    "jarvis-mcp-call": command("Call the MCP server of JARVIS-CD on a cluster once", () => import("./jarvis-mcp-call.ts")),
    "jarvis-mcp-refresh": command(
      "Ask the MCP server of JARVIS-CD on a cluster which tools it has",
      () => import("./jarvis-mcp-refresh.ts"),
    ),
    completion: command("Print what a shell needs to complete command lines", () => import("./completion.ts")),
    version: command("Print the version", () => import("./version.ts")),
  },
  job: {
    submit: command("Put a job into a cluster's queue", () => import("./job/submit.ts")),
    "submit-pipeline": command("Run a JARVIS-CD pipeline that the cluster has", () => import("./job/submit-pipeline.ts")),
    watch: command("Follow a job until it ends", () => import("./job/watch.ts")),
    "read-log": command("Print what a job wrote", () => import("./job/read-log.ts")),
    wait: command("Wait until a job has ended", () => import("./job/wait.ts")),
    status: command("Show where a job stands", () => import("./job/status.ts")),
    monitor: command("Show where a job stands, with a page of its events", () => import("./job/monitor.ts")),
    list: command("List recent jobs, newest first", () => import("./job/list.ts")),
    cancel: command("End a job", () => import("./job/cancel.ts")),
    attempts: command("List the attempts of a job", () => import("./job/attempts.ts")),
    progress: command("List what a job reported of its progress", () => import("./job/progress.ts")),
    "record-progress": command("Report progress of a job from outside of it", () => import("./job/record-progress.ts")),
    tasks: command("List the tasks of a job", () => import("./job/tasks.ts")),
    "task-events": command("List the timeline of a task", () => import("./job/task-events.ts")),
    "record-task-event": command("Add to the timeline of a task", () => import("./job/record-task-event.ts")),
    "list-artifacts": command("List the files that a job left", () => import("./job/list-artifacts.ts")),
    "used-artifacts": command("List the artifacts that a job uses", () => import("./job/used-artifacts.ts")),
    "used-by": command("List the jobs that use an artifact", () => import("./job/used-by.ts")),
    provenance: command("Say what a job used, did and left, as PROV or RO-Crate", () => import("./job/provenance.ts")),
    fetch: command("Fetch all files that a job left", () => import("./job/fetch.ts")),
    "read-artifact": command("Fetch a file that a job left", () => import("./job/read-artifact.ts")),
  },
  queue: {
    list: command("List the queue in the order of submission", () => import("./queue/list.ts")),
    cancel: alias("Another name of job cancel", () => import("./job/cancel.ts")),
    audit: command("Check the whole queue", () => import("./queue/audit.ts")),
    repair: command("Put right what an audit can prove", () => import("./queue/repair.ts")),
  },
  worker: {
    run: command("Run the worker of a cluster on this machine", () => import("./worker/run.ts")),
    start: command("Run a worker in the background", () => import("./worker/start.ts")),
    stop: command("Stop a worker; its jobs go on", () => import("./worker/stop.ts")),
    status: command("Show the worker of a cluster", () => import("./worker/status.ts")),
    bridge: command("Carry a link between standard input and output and the worker", () => import("./worker/bridge.ts")),
    configure: command("Take the configuration that a desktop sends", () => import("./worker/configure.ts")),
    pair: command("Print a code that lets one desktop in", () => import("./worker/pair.ts")),
  },
  "worker keys": {
    list: command("List the keys of desktops that a worker lets in, and its own", () => import("./worker/keys-list.ts")),
    revoke: command("Let a desktop's key in no longer, and end its sessions", () => import("./worker/keys-revoke.ts")),
    rotate: command("Give a worker another key of its own", () => import("./worker/keys-rotate.ts")),
  },
  endpoint: {
    start: alias("Another name of worker run", () => import("./worker/run.ts")),
    status: alias("Another name of worker status", () => import("./worker/status.ts")),
  },
  desktop: {
    start: command("Start the desktop daemon", () => import("./desktop/start.ts")),
    stop: command("Stop the desktop daemon; workers and jobs go on", () => import("./desktop/stop.ts")),
    status: command("Show the daemon and the way to each cluster", () => import("./desktop/status.ts")),
    logs: command("Print the daemon's log", () => import("./desktop/logs.ts")),
    run: command("Run the daemon in the foreground", () => import("./desktop/run.ts")),
  },
  api: {
    start: command("Serve the API on TCP, from now on and after each start of the daemon", () => import("./api/start.ts")),
    stop: command("Serve the API on TCP no longer", () => import("./api/stop.ts")),
    status: command("Show how the API is served on TCP", () => import("./api/status.ts")),
    "rotate-token": command("Replace the token of the API on TCP", () => import("./api/rotate-token.ts")),
  },
  cluster: {
    add: command("Register a cluster, or change one", () => import("./cluster/add.ts")),
    list: command("List the registered clusters", () => import("./cluster/list.ts")),
    show: command("Show one cluster", () => import("./cluster/show.ts")),
    "pin-target": command("Pin which host a cluster's login node has to be", () => import("./cluster/pin-target.ts")),
    probe: command("Look at a cluster's host: platform, room, installation, worker", () => import("./cluster/probe.ts")),
    bootstrap: command("Install clio-relay on a cluster's host, and have its worker run", () => import("./cluster/bootstrap.ts")),
    "install-endpoint-service": command(
      "Have a service keep a cluster's worker running",
      () => import("./cluster/install-endpoint-service.ts"),
    ),
    "restart-endpoint-service": command(
      "Restart the service of a cluster's worker; jobs go on",
      () => import("./cluster/restart-endpoint-service.ts"),
    ),
    "remove-endpoint-service": command(
      "Stop the service of a cluster's worker and take it away; jobs go on",
      () => import("./cluster/remove-endpoint-service.ts"),
    ),
    "endpoint-service-status": command(
      "Show how the service of a cluster's worker is",
      () => import("./cluster/endpoint-service-status.ts"),
    ),
    rollback: command("Go back to the version that was installed on a cluster before", () => import("./cluster/rollback.ts")),
    uninstall: command("Remove clio-relay from a cluster's host", () => import("./cluster/uninstall.ts")),
    remove: command("Forget a cluster; its queue and files stay", () => import("./cluster/remove.ts")),
  },
  scheduler: {
    status: command("Show what a cluster's scheduler says of a job", () => import("./scheduler/status.ts")),
    cancel: command("Ask a cluster's scheduler for the end of a job of this queue", () => import("./scheduler/cancel.ts")),
  },
  link: {
    list: command("List the links: state, last round trip, bytes, connections", () => import("./link/list.ts")),
  },
  "relay-host": {
    serve: command("Join workers and desktops that dial out", () => import("./relay-host/serve.ts")),
    "render-frps-config": command("Print a configuration for frps", () => import("./relay-host/render-frps-config.ts")),
    "render-frpc-config": command(
      "Print a configuration for a frpc that offers a port of its machine",
      () => import("./relay-host/render-frpc-config.ts"),
    ),
    "render-frpc-visitor-config": command(
      "Print a configuration for a frpc that visits what another one offers",
      () => import("./relay-host/render-frpc-visitor-config.ts"),
    ),
    "test-http-transport": command(
      "Try HTTP over the link that the daemon holds to a cluster",
      () => import("./relay-host/test-http-transport.ts"),
    ),
    "test-ssh-transport": command("Try a link of mode ssh", () => import("./relay-host/test-ssh-transport.ts")),
    "test-frpc-connection": command("Try the way to a cluster's worker through frps", () => import("./relay-host/test-frpc-connection.ts")),
    "test-direct-transport": command(
      "Try the direct way to a cluster's worker, from peer to peer",
      () => import("./relay-host/test-direct-transport.ts"),
    ),
  },
  "relay-host service": {
    install: command("Have this machine's systemd keep a relay-host running", () => import("./relay-host/service-install.ts")),
    uninstall: command("Stop this machine's relay-host, and remove its unit", () => import("./relay-host/service-uninstall.ts")),
  },
  "remote-mcp": {
    register: command("Offer agents the tools of an MCP server on a cluster", () => import("./remote-mcp/register.ts")),
    refresh: command("Ask an MCP server on a cluster which tools it has", () => import("./remote-mcp/refresh.ts")),
    list: command("List the MCP servers on clusters that are registered", () => import("./remote-mcp/list.ts")),
    reload: command("Show the tools of servers on clusters as agents are shown them now", () => import("./remote-mcp/reload.ts")),
    unregister: command("Offer agents the tools of an MCP server no longer", () => import("./remote-mcp/unregister.ts")),
  },
  agent: {
    run: command("Run the cluster's agent on a prompt", () => import("./agent/run.ts")),
    skill: command("Write a skill that teaches an agent the commands and the tools", () => import("./agent/skill.ts")),
    "render-mcp-config": command("Print what an agent's program needs to start mcp-server", () => import("./agent/render-mcp-config.ts")),
  },
  emit: {
    progress: command("Report progress from inside a job", () => import("./emit/emit-progress.ts")),
    "task-event": command("Add to the job's timeline from inside it", () => import("./emit/emit-task-event.ts")),
  },
};

/** One sentence on each noun. */
export const NOUNS: Readonly<Record<string, string>> = {
  job: "Work: submit, follow, collect",
  queue: "The queue of a cluster",
  worker: "The process that runs the jobs of a cluster",
  "worker keys": "The keys of a worker's links",
  desktop: "The daemon between commands and clusters",
  api: "The API on TCP, with a token",
  scheduler: "Jobs of a cluster's scheduler, by its own ids",
  link: "The links to the clusters",
  cluster: "The clusters that this installation knows",
  "relay-host": "Where both sides meet that can only dial out",
  "relay-host service": "The relay-host of this machine, from boot on",
  "remote-mcp": "MCP servers on clusters, whose tools agents are offered",
  agent: "Agents, and what they need",
  emit: "Reports from inside a job",
};
