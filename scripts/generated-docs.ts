/**
 * The pages under docs/ that are made from the code. `bun scripts/generated-docs.ts` writes them; a test compares them.
 */
import path from "node:path";
import { desktopOperations } from "../src/api/desktop/app.ts";
import { desktopDocument } from "../src/api/desktop/document.ts";
import type { DesktopServices } from "../src/api/desktop/services.ts";
import { openApiDocument } from "../src/api/openapi.ts";
import { workerOperations } from "../src/api/worker-app.ts";
import type { WorkerServices } from "../src/api/worker-services.ts";
import { VERSION } from "../src/config/version.ts";
import { ERRORS, type ErrorRule, EXIT, EXIT_MEANINGS } from "../src/domain/errors.ts";
import { cliPage, cliSchemas, settingsPage } from "./command-pages.ts";
import { manPage } from "./man-page.ts";

const DOCS = path.join(path.dirname(import.meta.dir), "docs");

/** Each generated page's name below docs/ and its content. */
export async function generatedDocs(): Promise<Record<string, string>> {
  return {
    "cli.md": await cliPage(),
    "cli-schemas.json": cliSchemas(),
    "clio-relay.1": await manPage(),
    "errors.md": errorsPage(),
    "openapi.json": openApi(),
    "openapi-desktop.json": desktopOpenApi(),
    "settings.md": settingsPage(),
  };
}

function openApi(): string {
  // Describing operations needs none of what their handlers need.
  const operations = workerOperations({} as WorkerServices);
  return `${JSON.stringify(openApiDocument(operations, { title: "clio-relay worker", version: VERSION }, { worker: true }), null, 2)}\n`;
}

/** That of a daemon that wants a token; on a Unix socket it names none. */
function desktopOpenApi(): string {
  const services = { access: {} as NonNullable<DesktopServices["access"]>, version: VERSION };
  const operations = desktopOperations(services as DesktopServices);
  return `${JSON.stringify(desktopDocument(operations, services), null, 2)}\n`;
}

function errorsPage(): string {
  const rows = Object.entries<ErrorRule>(ERRORS).map(
    ([code, rule]) =>
      `| \`${code}\` | ${rule.http} | ${rule.exit} | ${rule.mcp} | ${rule.retryable ? "yes" : "no"} | ${rule.title} | ${rule.hint === undefined ? "" : `\`${rule.hint}\``} |`,
  );
  const exits = Object.entries(EXIT).map(([name, code]) => `| ${code} | ${EXIT_MEANINGS[name as keyof typeof EXIT]} |`);
  return `# Errors

Generated from \`src/domain/errors.ts\`. Every failure carries one of these reasons, at each door in its own form: the HTTP problem's
\`reason\` and \`status\`, the CLI's exit code, the JSON-RPC code of MCP. Programs decide on the reason, never on the text. With
\`--json\` the CLI writes the problem document to standard error, on one line, and no other words about the failure.

| reason | HTTP | exit | MCP | retryable | meaning | what to do |
|---|---|---|---|---|---|---|
${rows.join("\n")}

## Exit codes of the CLI

| code | when |
|---|---|
${exits.join("\n")}
`;
}

if (import.meta.main) {
  for (const [name, content] of Object.entries(await generatedDocs())) await Bun.write(path.join(DOCS, name), content);
}
