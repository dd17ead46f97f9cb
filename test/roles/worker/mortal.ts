/** A call at which a worker dies: by SIGKILL, before it is made or when its answer is there. `never`: it lives, and no answer comes. */
export interface Death {
  readonly call: string;
  readonly when: "before" | "after" | "never";
}

const die = (): void => void process.kill(process.pid, "SIGKILL");

/**
 * A part of a worker that does what it does, until the call at which this process dies; null for none. An answer that says that there
 * was nothing to do is not waited for.
 */
export function mortal<T extends object>(part: T, death: Death | null): T {
  if (death === null) return part;
  return new Proxy(part, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      const call = member.bind(target) as (...args: unknown[]) => unknown;
      if (name !== death.call) return call;
      return async (...args: unknown[]) => {
        if (death.when === "never") return new Promise(() => undefined);
        if (death.when === "before") die();
        const answer = await call(...args);
        if (answer !== null) die();
        return answer;
      };
    },
  });
}
