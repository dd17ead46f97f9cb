import { isRelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { isErrno } from "../../lib/files/atomic-file.ts";

/** Failures of the machine or of a server that pass by themselves, or with somebody's help, and are no fault of the job's files. */
const PASSING_ERRNOS = [
  ...["ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ENOLCK", "EINTR", "EBUSY"],
  ...["ESTALE", "ETIMEDOUT", "EHOSTDOWN", "EHOSTUNREACH", "ENOTCONN"],
];
const PASSING_CODES = ["storage_admission_refused", "queue_unavailable", "shutting_down"] as const;

/** Whether to try again for as long as it takes. */
export const isPassing = (error: unknown): boolean =>
  isErrno(error, ...PASSING_ERRNOS) || PASSING_CODES.some((code) => isRelayError(error, code));

/** Whether it is no failure of the step: nobody wants the step any more, or it is somebody else's to take. */
const isFinal = (error: unknown): boolean => isRelayError(error, "attempt_fenced") || isRelayError(error, "version_mismatch");

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * How often each step of an attempt is tried that fails for a reason that time alone does not mend. Whoever runs the steps repeats them
 * after a delay; once a step has used up its tries, what is to be done instead is done.
 */
export class Patience {
  readonly #failures = new Map<string, number>();

  /**
   * @param signal once it is aborted, every failure is the abort's
   * @param onGivenUp told once of each step that has used up its tries
   */
  constructor(
    private readonly signal: AbortSignal,
    private readonly onGivenUp: (step: string, cause: unknown) => void,
    private readonly tries: number = LIMITS.stepTries,
  ) {}

  /** The step's result, or that of `instead`. @throws the step's failure while it is worth another try */
  async run<T>(step: string, work: () => Promise<T> | T, instead: (cause: unknown) => Promise<T> | T): Promise<T> {
    try {
      const result = await work();
      this.#failures.delete(step);
      return result;
    } catch (error) {
      if (this.signal.aborted || isPassing(error) || isFinal(error)) throw error;
      const failures = (this.#failures.get(step) ?? 0) + 1;
      this.#failures.set(step, failures);
      if (failures < this.tries) throw error;
      if (failures === this.tries) this.onGivenUp(step, error);
      return instead(error);
    }
  }
}
