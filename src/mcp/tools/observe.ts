import * as v from "valibot";
import type { Event } from "../../domain/event.ts";
import { jsonBytes, Sequence } from "../../domain/primitives.ts";
import { asked } from "../asked.ts";
import type { Place } from "../clusters.ts";
import { followEvents } from "../follow.ts";
import { defineTool, READS, type ToolCall } from "../tool.ts";
import { EventView, eventView, fitting, JobView, jobView, TRUNCATED } from "../views.ts";
import { OBSERVED, tails } from "../wait.ts";
import { JOB, logLimit, PAGED, said } from "./arguments.ts";
import { MatchView, type Pattern, patternOf, SCOPES, type Scope, Search } from "./observed-matches.ts";

/** Log text of each stream that an observation brings along unless more is asked for. */
const OBSERVED_LOG_BYTES = 4_096;
/** How long is waited at most, and for a pattern where nobody says how long, in seconds. */
const WAIT_MAX = 600;
/** Events that one answer looks through for a pattern, where it goes on from page to page. */
const EVENTS = 10_000;

interface Page {
  readonly events: readonly Event[];
  readonly next_cursor: number;
}

const regularExpression = (what: string) => v.optional(said(v.pipe(v.string(), v.minLength(1)), what));

export const observe = defineTool({
  name: "relay_observe",
  title: "What happens in a job",
  profile: "user",
  description:
    "Gives the events of a job from cursor on, how it stands, and the end of what it wrote. With wait_seconds it waits for the next event where there is none yet. pattern, a regular expression, picks the lines that match out of what these events tell of; with until_pattern it waits until one does, or the job has ended. " +
    "Come back with next_cursor: nothing is missed in between. Ends nothing, whatever time is over.",
  hints: READS,
  clusters: "all",
  input: v.strictObject({
    ...JOB,
    ...PAGED,
    wait_seconds: v.optional(
      said(
        v.pipe(v.number(), v.minValue(0), v.maxValue(WAIT_MAX)),
        `how long to wait at most, for an event or for until_pattern; left out: not at all, or ${WAIT_MAX} with until_pattern`,
      ),
    ),
    pattern: regularExpression("lines that match it are in matches, at most 100"),
    until_pattern: regularExpression("answer when a line matches it: matched says whether one did"),
    pattern_scope: v.optional(
      said(v.pipe(v.array(v.picklist(SCOPES)), v.minLength(1), v.maxLength(SCOPES.length)), "where patterns are looked for"),
      [...SCOPES],
    ),
    include_logs: v.optional(said(v.boolean(), "whether the end of what it wrote comes along"), true),
    log_limit: logLimit(OBSERVED_LOG_BYTES),
  }),
  output: v.object({
    ...JobView,
    events: v.array(EventView),
    next_cursor: Sequence,
    truncated: TRUNCATED,
    matches: v.optional(v.array(MatchView)),
    matches_truncated: v.optional(v.boolean()),
    matched: v.optional(v.boolean()),
    match: v.optional(v.nullable(MatchView)),
    logs_tail: OBSERVED.logs_tail,
  }),
  async run({ job_id, cursor, limit, wait_seconds, include_logs, log_limit, ...given }, call) {
    const { pattern, until_pattern, pattern_scope, ...where } = given;
    const [picking, until] = [pattern, until_pattern].map((source) => (source === undefined ? null : patternOf(source)));
    const place = await call.clusters.ofJob(job_id, where, call.signal);
    const watch = new Watch(place, job_id, limit, call);
    const deadline = call.now() + (wait_seconds ?? (until == null ? 0 : WAIT_MAX)) * 1_000;
    const search = new Search(place, job_id, new Set<Scope>(pattern_scope), call.signal);
    const seen =
      until == null ? { page: await watch.next(cursor, deadline), match: null } : await watched(watch, search, until, cursor, deadline);
    const job = await asked(watch.who, call.signal, (signal) => place.client.job(job_id, signal));
    const logs = include_logs ? await tails(place, job_id, log_limit, call.signal) : null;
    const searched = picking == null ? seen.page.events : search.within(seen.page.events);
    const picked = picking == null ? null : await search.matching(searched, picking);
    const matches =
      picked === null
        ? []
        : fitting(
            picked.found.map(({ match }) => match),
            36 * 1024,
          ).items;
    const taken = 8_192 + (logs === null ? 0 : jsonBytes(logs)) + jsonBytes(matches);
    const { items } = fitting(searched.map(eventView), taken);
    const truncated = items.length < seen.page.events.length;
    return {
      ...jobView(place, job),
      events: items,
      next_cursor: truncated ? items.at(-1)!.seq + 1 : seen.page.next_cursor,
      truncated,
      ...(picked === null ? {} : { matches, matches_truncated: picked.cut || matches.length < picked.found.length }),
      ...(until == null ? {} : { matched: seen.match !== null, match: seen.match }),
      ...(logs === null ? {} : { logs_tail: logs }),
    };
  },
});

/** The events of one job, page by page. */
class Watch {
  readonly who: string;

  constructor(
    private readonly place: Place,
    private readonly jobId: string,
    private readonly limit: number,
    private readonly call: ToolCall,
  ) {
    this.who = `the worker of ${place.entry.name}`;
  }

  /** The page from `cursor` on; where there is none yet, the one that begins with the next event. Empty: the job has ended, or the time is over. */
  async next(cursor: number, deadline: number): Promise<Page> {
    const { place, jobId, limit, call } = this;
    const read = () => asked(this.who, call.signal, (signal) => place.client.events(jobId, { cursor, limit, signal }));
    const page = await read();
    const left = deadline - call.now();
    if (page.events.length > 0 || left <= 0) return page;
    const over = AbortSignal.timeout(left);
    for await (const _ of followEvents(place, jobId, cursor, AbortSignal.any([over, call.signal]))) break;
    call.signal.throwIfAborted();
    return read();
  }
}

/**
 * Go on until a line matches, the job has ended, the time is over, or as much was looked through as one answer may. The page that comes back is the last one, up to what
 * matched.
 */
async function watched(
  watch: Watch,
  search: Search,
  until: Pattern,
  cursor: number,
  deadline: number,
): Promise<{ page: Page; match: MatchView | null }> {
  let last: Page = { events: [], next_cursor: cursor };
  for (let looked = 0; looked < EVENTS; looked += last.events.length) {
    const page = await watch.next(last.next_cursor, deadline);
    if (page.events.length === 0) return { page: last.events.length === 0 ? page : last, match: null };
    const events = search.within(page.events);
    const [first] = (await search.matching(events, until, 1)).found;
    if (first !== undefined) {
      const upTo = events.filter(({ seq }) => seq <= first.seq);
      return { page: { events: upTo, next_cursor: first.seq + 1 }, match: first.match };
    }
    last = { events, next_cursor: events.at(-1)!.seq + 1 };
    if (events.length < page.events.length || search.isOver) break;
  }
  return { page: last, match: null };
}
