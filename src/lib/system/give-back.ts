/** Smaller ones cost more than they hold, and may lie in memory that others share (Buffer.poolSize). */
const LEAST = 16 * 1024;

/**
 * Give the memory that a view lies in back at once, where the collector would come for it a hundred megabytes later. The view, and any other of the
 * same memory, is empty from here on: whoever calls this is the last to know of it.
 */
export function giveBack(view: Uint8Array): void {
  const memory = view.buffer;
  if (memory.byteLength >= LEAST && memory instanceof ArrayBuffer) memory.transfer(0);
}
