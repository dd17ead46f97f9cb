import * as v from "valibot";

/** `agent skill --json`. */
export const AgentSkill = v.strictObject({
  /** The file that it was written into; null where it was only printed. */
  path: v.nullable(v.string()),
  text: v.string(),
});

/** `agent render-mcp-config --json`. */
export const McpConfiguration = v.strictObject({
  client: v.string(),
  /** The file that it was written into; null where it was only printed. */
  path: v.nullable(v.string()),
  text: v.string(),
});
