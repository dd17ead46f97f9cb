export interface JobEnvironmentInput {
  /** The worker's environment. */
  readonly worker: Readonly<Record<string, string | undefined>>;
  /** Variables of the submission; they override the allow-list and nothing of the relay's own. */
  readonly spec: Readonly<Record<string, string>>;
  readonly jobId: string;
  readonly attempt: number;
  readonly cluster: string;
  /** The attempt's directory for event files. */
  readonly eventsDir: string;
}

/** The complete environment of a job. */
export declare function jobEnvironment(input: JobEnvironmentInput): Record<string, string>;

/**
 * The interpreter that a script's first line names, as arguments before the script's path: `#!/bin/bash -e` gives
 * ["/bin/bash", "-e"], `#!/usr/bin/env -S python3 -u` gives ["/usr/bin/env", "-S", "python3 -u"]. ["/bin/sh"] without a `#!` line.
 */
export declare function interpreterOf(script: string): string[];
