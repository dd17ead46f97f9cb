import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { eventually } from "../../runner/wait.ts";
import { Collected } from "../collected.ts";
import { type SourceRelay, withWorker } from "../source-relay.ts";

let relay: SourceRelay;

beforeAll(async () => {
  relay = await withWorker();
  await relay.ok("cluster", "add", "far");
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** What a link to `far` does: answers come of the worker of `local`, or of the link that is lost. */
class Way implements AsyncDisposable {
  /** What a request fails with from now on; null: the worker answers. */
  failure: { readonly reason: string; readonly status: number; readonly detail: string; readonly hint?: string } | null = null;
  /** Paths of what was refused. */
  readonly refused: string[] = [];
  /** Called with each request. */
  onRequest: (path: string) => void = () => undefined;
  readonly #worker = path.join(relay.home, "run", "worker-local.sock");
  readonly #cut = new Set<AbortController>();
  readonly #server = Bun.serve({
    unix: path.join(relay.home, "run", "worker-far.sock"),
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      this.onRequest(pathname);
      if (this.failure === null) {
        const broken = new AbortController();
        this.#cut.add(broken);
        try {
          const body = request.body === null ? null : (await request.text()).replaceAll('"far"', '"local"');
          const init = {
            method: request.method,
            headers: request.headers,
            body,
            unix: this.#worker,
            signal: broken.signal,
            timeout: false,
          };
          return await fetch(`http://relay${pathname}${search}`, init as unknown as RequestInit);
        } catch {
          // As a link answers whose connection is lost.
        } finally {
          this.#cut.delete(broken);
        }
      }
      this.refused.push(pathname);
      const { status, ...problem } = this.failure ?? { reason: "link_down", status: 503, detail: "the connection broke" };
      return Response.json({ type: "about:blank", title: "down", status, ...problem }, { status });
    },
  });

  /** The link is lost, with all that is under way. */
  lose(): void {
    this.failure = {
      reason: "authorization_required",
      status: 503,
      detail: "the link to far is down, and only you can bring it up",
      hint: "clio-relay connect far",
    };
    for (const broken of this.#cut) broken.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

/** A command that ends when it is told to. */
function gated(name: string, ending = "true"): { args: string[]; release: () => void } {
  const gate = path.join(relay.directory, name);
  return {
    args: ["--", "sh", "-c", `while [ ! -e "${gate}" ]; do sleep 0.05; done; ${ending}`],
    release: () => fs.writeFileSync(gate, ""),
  };
}

/** The link is lost while a command waits for a job, and comes back. */
async function throughLoss(way: Way, name: string, args: readonly string[], release: () => void): Promise<Collected> {
  const waiting = new Promise<void>((resolve) => {
    // The first question of a wait is answered at once.
    let left = name === "/wait" ? 2 : 1;
    way.onRequest = (asked) => (asked.endsWith(name) && --left === 0 ? resolve() : undefined);
  });
  const child = new Collected(relay.start(args));
  await waiting;
  const before = way.refused.length;
  way.lose();
  await eventually(() => way.refused.length >= before + 3, { what: "a command that tries again" });
  way.failure = null;
  release();
  await child.exited;
  return child;
}

test("a wait that has begun goes on through a link that only a person brings back", async () => {
  await using way = new Way();
  const said =
    /^notice: .*; trying again until it is back: clio-relay connect far\nnotice: connected again\nsucceeded: exited with code 0\n$/;
  const again = /notice: .*clio-relay connect far\n/;
  for (const [at, verb] of [["wait"], ["wait", "--json"], ["watch", "--json"]].entries()) {
    const job = gated(`gate-${at}`);
    const id = await relay.submit("--cluster", "far", ...job.args);
    const child = await throughLoss(
      way,
      verb[0] === "watch" ? "/events/sse" : "/wait",
      ["job", ...verb, id, "--cluster", "far"],
      job.release,
    );
    expect([verb, await child.exited, child.stderr]).toEqual([verb, 0, expect.stringMatching(again)]);
    expect(child.stderr).toEndWith("notice: connected again\n");
  }
  const job = gated("gate-submit");
  const submit = await throughLoss(way, "/wait", ["job", "submit", "--cluster", "far", "--wait", ...job.args], job.release);
  expect(await submit.exited).toBe(0);
  expect(submit.stderr).toMatch(said);
}, 60_000);

test("a wait that ends for another reason says that the job goes on, and how to wait again", async () => {
  await using way = new Way();
  const job = gated("gate-refused");
  const id = await relay.submit("--cluster", "far", ...job.args);
  way.onRequest = (asked) => {
    if (asked.endsWith("/wait"))
      way.failure = { reason: "certificate_refused", status: 502, detail: "the certificate is not trusted", hint: "look at it" };
  };
  const child = await relay.run(["job", "submit", "--cluster", "far", "--wait", ...job.args]);
  expect(child.code).toBe(4);
  const other = child.stdout.trim();
  expect(child.stderr).toBe(
    "error: the certificate is not trusted [certificate_refused]\n" +
      `hint: look at it; the job goes on, wait again with: clio-relay job wait ${other} --cluster far\n`,
  );
  way.failure = null;
  way.onRequest = () => undefined;
  job.release();
  await relay.ok("job", "wait", id, "--cluster", "far");
}, 60_000);
