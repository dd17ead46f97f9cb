import type { ClusterClient } from "../../api/client.ts";
import type { Artifact } from "../../domain/artifact.ts";
import { RelayError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { bodyBytes } from "./body-bytes.ts";
import type { Reconnect } from "./reconnect.ts";

/** How long nothing may come through before a fetch gives up. */
const GIVE_UP_MS = 60_000;

/**
 * The bytes of an artifact, each once. A connection that breaks is taken up again behind the last byte. Ends only when size and
 * SHA-256 are the recorded ones.
 *
 * @throws RelayError artifact_changed when they are not, artifact_unreadable, or what keeps the connection from coming back
 */
export async function* artifactBytes(
  cluster: ClusterClient,
  artifact: Artifact,
  reconnect: Reconnect,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const hash = new Bun.CryptoHasher("sha256");
  let offset = 0;
  let lastByte = clock.monotonic();
  while (offset < artifact.size_bytes) {
    let failure: unknown = null;
    try {
      const content = await cluster.artifactContent(artifact.artifact_id, { offset, signal });
      for await (const bytes of bodyBytes(content)) {
        await reconnect.alive();
        if (offset + bytes.length > artifact.size_bytes) throw changed(artifact, "it is longer than its record says");
        hash.update(bytes);
        offset += bytes.length;
        yield bytes;
        // Whoever reads may take as long as it likes: what it held up did not come late.
        lastByte = clock.monotonic();
      }
      if (offset < artifact.size_bytes) failure = new RelayError("link_down", "the artifact's bytes broke off", { offset });
    } catch (error) {
      signal.throwIfAborted();
      failure = error;
    }
    if (failure === null) continue;
    if (clock.monotonic() - lastByte > GIVE_UP_MS) throw failure;
    await reconnect.wait(failure);
  }
  const digest = hash.digest("hex");
  if (digest !== artifact.sha256) throw changed(artifact, `its SHA-256 is ${digest}, recorded is ${artifact.sha256}`);
}

const changed = (artifact: Artifact, how: string): RelayError =>
  new RelayError("artifact_changed", `${artifact.artifact_id} is not what was recorded: ${how}`, { artifact_id: artifact.artifact_id });
