import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { DesktopClient } from "../../src/api/client/desktop-client.ts";
import { HttpPeer } from "../../src/api/client/http-peer.ts";
import { ClusterClient } from "../../src/api/client.ts";
import type { RelayError } from "../../src/domain/errors.ts";
import { LIMITS } from "../../src/domain/limits.ts";

const JOB = `job_${"a".repeat(32)}`;
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-answers-"));
const socket = path.join(directory, "s");
/** Answers a request on the connection that it came on. */
let answer: (connection: net.Socket) => void = () => undefined;
let sent = 0;

const server = net.createServer((connection) => {
  connection.on("error", () => undefined);
  connection.on("data", () => answer(connection));
});
beforeAll(() => new Promise<void>((resolve) => server.listen(socket, resolve)));
afterAll(() => {
  server.close();
  fs.rmSync(directory, { recursive: true });
});

const whole =
  (body: string, status = "200 OK", type = "application/json") =>
  (connection: net.Socket) =>
    void connection.write(`HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
/** A body that never ends, of these pieces. */
const endless =
  (piece: string, type: string, status = "200 OK") =>
  (connection: net.Socket) => {
    sent = 0;
    connection.write(`HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`);
    const chunk = `${piece.length.toString(16)}\r\n${piece}\r\n`;
    const more = (): void => {
      while (!connection.destroyed && connection.write(chunk)) sent += chunk.length;
    };
    connection.on("drain", more);
    more();
  };

const worker = () => new ClusterClient("far", new HttpPeer({ kind: "unix", path: socket }));
const desktop = () => new DesktopClient({ kind: "unix", path: socket });
const END = new AbortController().signal;
const ATTENDED = { requested_by: "connect far", interactive: false, directory: "/", agent_socket: null, ssh_config: null, variables: {} };
/** To its first result. */
const first = async (stream: AsyncGenerator<unknown, unknown>): Promise<unknown> => (await stream.next()).value;

/** Every operation whose answer is a document. */
const DOCUMENTS: Record<string, () => Promise<unknown>> = {
  submit: () => worker().submit({ cluster: "far", kind: "command", spec: { argv: ["true"] } }),
  job: () => worker().job(JOB),
  status: () => worker().status(JOB),
  wait: () => worker().wait(JOB),
  cancel: () => worker().cancel(JOB),
  jobs: () => worker().jobs(),
  queue: () => worker().queue(),
  events: () => worker().events(JOB),
  monitor: () => worker().monitor(JOB),
  attempts: () => worker().attempts(JOB),
  tasks: () => worker().tasks(JOB),
  taskEvents: () => worker().taskEvents(JOB),
  recordTaskEvent: () => worker().recordTaskEvent(JOB, { event_type: "x", label: "a", summary: "b" }),
  progress: () => worker().progress(JOB),
  recordProgress: () => worker().recordProgress(JOB, { label: "a", current: 1 }),
  artifacts: () => worker().artifacts(JOB),
  artifact: () => worker().artifact(JOB),
  log: () => worker().log(JOB, "stdout"),
  attemptLogs: () => worker().attemptLogs(JOB, 1),
  workers: () => worker().workers(),
  keys: () => worker().keys(),
  revokeKey: () => worker().revokeKey("x"),
  rotateHostKey: () => worker().rotateHostKey(1),
  makePairingCode: () => worker().makePairingCode(null, null),
  audit: () => worker().audit(),
  repair: () => worker().repair(),
  alive: () => worker().alive(END),
  usedArtifacts: () => worker().lineage.usedArtifacts(JOB),
  usedBy: () => worker().lineage.usedBy(JOB),
  recordTransform: () => worker().lineage.recordTransform(JOB, {} as never),
  clusters: () => desktop().clusters(),
  clusterEntry: () => desktop().clusterEntry("far"),
  changeCluster: () => desktop().changeCluster("far", (known) => known!),
  removeCluster: () => desktop().removeCluster("far"),
  links: () => desktop().links(),
  disconnect: () => desktop().disconnect("far"),
  desktopStatus: () => desktop().status(),
  stop: () => desktop().stop(),
  listener: () => desktop().listener(),
  answerPrompt: () => desktop().answerPrompt("far", "id", null),
};
const STREAMS: Record<string, () => Promise<unknown>> = {
  eventStream: () => first(worker().eventStream(JOB)),
  connect: () => first(desktop().connect("far", ATTENDED)),
  host: () => first(desktop().host("far", "probe", {}, ATTENDED)),
};

async function refusal(call: () => Promise<unknown>): Promise<RelayError> {
  try {
    return { code: "none", message: `gave ${JSON.stringify(await call())}` } as never;
  } catch (error) {
    return error as RelayError;
  }
}
const ofWhom = (name: string): RegExp => (name in STREAMS && name !== "eventStream" ? /daemon/ : /the worker of far|the desktop daemon/);

describe("an answer that is none is a failure that says whose it is", () => {
  for (const [name, call] of Object.entries({ ...DOCUMENTS, ...STREAMS })) {
    test(name, async () => {
      for (const body of ["{}", "[]", '"x"', "no JSON", "", '{"job":{"job_id":"\\u001b[2J"},"jobs":[{}],"workers":[1]}']) {
        answer = whole(body);
        expect(await refusal(call), body).toMatchObject({ code: "answer_malformed", message: expect.stringMatching(ofWhom(name)) });
      }
    });
  }

  test("null is an answer only to a question about a transform", async () => {
    answer = whole("null");
    for (const call of Object.values({ ...DOCUMENTS, ...STREAMS })) expect(await refusal(call)).toMatchObject({ code: "answer_malformed" });
    expect(await worker().lineage.transform(JOB)).toBeNull();
  });

  test("a refusal that does not say why, or says it in a way that is not known", async () => {
    const problem = JSON.stringify({ title: "X", status: 409, reason: "of_a_later_version", detail: "as it is" });
    for (const [status, body, said] of [
      ["500 Oops", "<b>no</b>", "the worker of far answers 500, and does not say why"],
      ["302 Found", "", "the worker of far answers 302, and does not say why"],
      ["404 Not Found", "{}", "the worker of far answers 404, and does not say why"],
      ["409 Conflict", problem, "of_a_later_version"],
    ] as const) {
      answer = whole(body, status);
      for (const call of [DOCUMENTS["status"]!, STREAMS["eventStream"]!])
        expect(await refusal(call)).toMatchObject({ code: "answer_malformed", message: expect.stringContaining(said) });
    }
    answer = whole(JSON.stringify({ reason: "job_not_found", detail: "no job" }), "404 Not Found");
    expect(await refusal(DOCUMENTS["status"]!)).toMatchObject({ code: "job_not_found", message: "no job" });
  });

  test("messages of a stream that are none", async () => {
    for (const message of ["data: {}\n\n", "data: no JSON\n\n", "data: null\n\n"]) {
      answer = whole(message, "200 OK", "text/event-stream");
      expect(await refusal(STREAMS["eventStream"]!)).toMatchObject({ code: "answer_malformed" });
      answer = whole(`event: notice\n${message}`, "200 OK", "text/event-stream");
      expect(await refusal(STREAMS["connect"]!)).toMatchObject({ code: "answer_malformed" });
    }
  });
});

describe("an answer without end is given up at its bound", () => {
  const ROOM = LIMITS.answerBytes + 8 * 1024 * 1024;
  const lines = "x".repeat(1_024 * 1_024);

  test("a document", async () => {
    answer = endless(" ".repeat(65_536), "application/json");
    expect(await refusal(DOCUMENTS["jobs"]!)).toMatchObject({ code: "answer_malformed", message: expect.stringContaining("bytes") });
    expect(sent).toBeLessThan(ROOM);
    answer = endless(" ".repeat(65_536), "text/html", "500 Oops");
    expect(await refusal(DOCUMENTS["jobs"]!)).toMatchObject({ code: "answer_malformed" });
    expect(sent).toBeLessThan(ROOM);
  });

  test("a line of a stream, and a message of many", async () => {
    answer = endless(lines, "text/event-stream");
    expect(await refusal(STREAMS["eventStream"]!)).toMatchObject({ code: "answer_malformed" });
    expect(sent).toBeLessThan(ROOM);
    answer = endless(`data: ${lines}\n`, "text/event-stream");
    expect(await refusal(STREAMS["eventStream"]!)).toMatchObject({ code: "answer_malformed" });
    expect(sent).toBeLessThan(ROOM);
  });
});
