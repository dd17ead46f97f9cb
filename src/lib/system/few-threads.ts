/**
 * Environment of a program of ours that starts no threads but those of its file calls. JavaScriptCore's helper threads (compiling, collecting, preparing
 * memory) are switched off: it ends the process where it cannot start one, which is when the user's processes are at their limit. Shims and workers are no
 * slower without them, and smaller.
 */
export const FEW_THREADS: Readonly<Record<string, string>> = {
  BUN_JSC_useConcurrentJIT: "0",
  BUN_JSC_useConcurrentGC: "0",
  BUN_JSC_numberOfGCMarkers: "1",
  BUN_JSC_useWarmUpMarkedBlocks: "0",
};
