import { OpenApi, type Operation, operation } from "../operation.ts";

/**
 * GET /openapi.json. The document of an app never changes, and takes some 50 ms: it is made when somebody first asks for it, and kept as it is sent.
 *
 * @param id of the operation
 */
export function openApiRoute(id: string, summary: string, document: () => Promise<unknown>): Operation {
  let kept: Promise<string> | null = null;
  const text = (): Promise<string> => {
    kept ??= document().then(
      (made) => JSON.stringify(made),
      (error: unknown) => {
        kept = null;
        throw error;
      },
    );
    return kept;
  };
  return operation({
    method: "get",
    path: "/openapi.json",
    id,
    summary,
    answer: { kind: "json", schema: OpenApi },
    handler: async () => new Response(await text(), { headers: { "content-type": "application/json" } }),
  });
}
