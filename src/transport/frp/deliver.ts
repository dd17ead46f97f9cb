import fs from "node:fs";
import layout from "../script/layout.sh" with { type: "text" };
import { accepted } from "../script/refusal.ts";
import type { Remote, Script } from "../script/remote.ts";
import take from "../script/take.sh" with { type: "text" };
import lookText from "./look.sh" with { type: "text" };
import { frpcFor, installedFrps } from "./programs.ts";
import receiveText from "./receive.sh" with { type: "text" };

const LOOK: Script = { name: "look for frpc", text: layout + lookText };
const RECEIVE: Script = { name: "receive frpc", text: layout + take + receiveText };
const SEND_MS = 10 * 60_000;
const READ_BYTES = 256 * 1024;

export interface FrpcDelivery {
  /** The installation's directory on the host; null for the usual place. */
  readonly home: string | null;
  /** Where programs lie on this machine. */
  readonly directory: string;
  readonly signal: AbortSignal;
  readonly onSent: (bytes: number, total: number) => void;
}

/**
 * Have the frpc that fits a host there, under its digest, from those that are installed here. Nothing is sent where it is there already.
 *
 * @returns its path there, and whether it was sent
 * @throws RelayError frp_not_installed where none here fits; host_unfit, storage_admission_refused, artifact_unfit, script_failed; as Remote.run
 */
export async function deliverFrpc(
  remote: Remote,
  { home, directory, signal, onSent }: FrpcDelivery,
): Promise<{ path: string; sent: boolean }> {
  const known = new Map(installedFrps(directory).map(({ platform, frpc }) => [platform, frpc]));
  const values = { a_home: home ?? "", a_amd64: known.get("linux_amd64") ?? "", a_arm64: known.get("linux_arm64") ?? "" };
  const look = accepted(await remote.run(LOOK, { values, signal }), LOOK);
  const { file, digest } = frpcFor(directory, look.one("platform"));
  const path = look.one("path");
  if (look.one("there") === "yes") return { path, sent: false };
  const options = { values: { a_home: home ?? "", a_digest: digest }, signal, withinMs: SEND_MS };
  accepted(await remote.feed(RECEIVE, bytesOf(file, onSent), options), RECEIVE);
  return { path, sent: true };
}

async function* bytesOf(file: string, onSent: FrpcDelivery["onSent"]): AsyncGenerator<Uint8Array> {
  const handle = await fs.promises.open(file, "r");
  try {
    const { size } = await handle.stat();
    for (let at = 0; ; ) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
      onSent(at, size);
    }
  } finally {
    await handle.close();
  }
}
