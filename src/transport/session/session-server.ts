import type { Duplex } from "node:stream";
import { type ServerSession, type ServerSessionOptions, serveSession } from "./server-session.ts";

/** How many clients may be between connection and success. */
const MAX_STRANGERS = 16;

/** Serves sessions with one identity, whatever their Duplexes come from. */
export class SessionServer {
  readonly #sessions = new Set<ServerSession>();
  /** In the order in which they came. */
  readonly #strangers = new Set<ServerSession>();

  constructor(private readonly options: ServerSessionOptions) {}

  /** Sessions whose client has shown who it is. */
  get sessions(): readonly ServerSession[] {
    return [...this.#sessions].filter(({ key }) => key !== null);
  }

  /** Serve a session on a Duplex. Where too many clients have not yet shown who they are, the oldest of them is ended: who says nothing keeps nobody out. */
  serve(duplex: Duplex): ServerSession {
    const session = serveSession(duplex, this.options);
    this.#sessions.add(session);
    this.#strangers.add(session);
    if (this.#strangers.size > MAX_STRANGERS) {
      const oldest = [...this.#strangers].find(({ key }) => key === null) ?? session;
      this.#strangers.delete(oldest);
      oldest.cut();
    }
    void session.authenticated.then(() => this.#strangers.delete(session));
    void session.closed.then(() => this.#sessions.delete(session));
    return session;
  }

  /** End at once every session whose key is no longer one of the allowed. @returns how many they were */
  revoke(): number {
    const allowed = this.options.allowedKeys();
    const ended = this.sessions.filter(({ key }) => !allowed.some((one) => key !== null && one.equals(key)));
    for (const session of ended) session.cut();
    return ended.length;
  }

  /** End every session, and resolve when all are over. */
  async close(): Promise<void> {
    const all = [...this.#sessions];
    for (const session of all) session.close();
    await Promise.all(all.map(({ closed }) => closed));
  }
}
