import fs from "node:fs";
import path from "node:path";
import type { SourceRelay } from "../cli/source-relay.ts";

/** A command that ends when it is let go of, and not before: `then` is what it does at its end, in sh. */
export class HeldJob {
  readonly argv: readonly string[];
  readonly #go: string;

  constructor(relay: SourceRelay, then = "true") {
    this.#go = path.join(relay.directory, `go-${crypto.randomUUID()}`);
    this.argv = ["sh", "-c", `until [ -e "$1" ]; do sleep 0.05; done; ${then}`, "sh", this.#go];
  }

  letGo(): void {
    fs.writeFileSync(this.#go, "");
  }
}
