import { Database } from "bun:sqlite";
import fs from "node:fs";
import path from "node:path";
import { openQueue } from "../../../src/queue/sqlite/open.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { queueStoreContract } from "./contract.ts";

queueStoreContract("SQLite", async () => {
  const directory = temporaryDirectory();
  return {
    open: async (options) => openQueue(directory.path, options),
    async spoil(jobId) {
      const database = new Database(path.join(directory.path, "queue.db"));
      database.run("UPDATE jobs SET spec = '{\"argv\": 7' WHERE job_id = ?", [jobId]);
      database.close();
      fs.rmSync(path.join(directory.path, "queue.db-shm"), { force: true });
    },
    dispose: async () => directory[Symbol.dispose](),
  };
});
