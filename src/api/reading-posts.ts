import { isSafe } from "../transport/http/request-head.ts";

/** Operations of a worker that change nothing although their method is not safe (RFC 9110, section 9.2.1): they wait, or what they ask has a body. */
export const READING_POSTS = ["/jobs/:id/wait", "/queue/audit", "/input-contents/query", "/jarvis/pipeline-inputs"] as const;

const READING = new RegExp(`^(?:${READING_POSTS.map((path) => path.replaceAll(/:\w+/g, "[^/?]+")).join("|")})(?:\\?|$)`);

/**
 * Whether anything is another than before when a worker has done a request.
 *
 * @param target its path at the worker, and its query
 */
export const changesSomething = (method: string, target: string): boolean =>
  !isSafe(method) && !(method === "POST" && READING.test(target));
