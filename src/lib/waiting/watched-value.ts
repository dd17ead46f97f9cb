/**
 * Call `changed` when what is looked at is another than before, for what nothing tells of. Keeps no process running.
 *
 * @returns how to stop
 */
export function watchValue(seen: () => string, changed: () => void, everyMs: number): () => void {
  let known = seen();
  const timer = setInterval(() => {
    const now = seen();
    if (now === known) return;
    known = now;
    changed();
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
