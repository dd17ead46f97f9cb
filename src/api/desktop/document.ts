import { openApiDocument } from "../openapi.ts";
import type { Operation } from "../operation.ts";
import { workerOperations } from "../worker-app.ts";
import type { WorkerServices } from "../worker-services.ts";
import type { DesktopServices } from "./services.ts";

/** The OpenAPI document of the desktop's app: its own operations, and those of every worker below its cluster's name. */
export const desktopDocument = (operations: readonly Operation[], { access, version }: Pick<DesktopServices, "access" | "version">) =>
  openApiDocument(
    operations,
    { title: "clio-relay desktop", version },
    {
      token: access !== null,
      // Describing operations needs none of what their handlers need.
      forwarded: { below: "/clusters/:name", operations: workerOperations({} as WorkerServices) },
    },
  );
