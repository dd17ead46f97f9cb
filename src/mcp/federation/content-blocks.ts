import * as v from "valibot";
import { isObject } from "./schema-walk.ts";

/** As atob takes it: with or without padding. */
const Base64 = v.pipe(
  v.string(),
  v.check((text) => {
    try {
      atob(text);
      return true;
    } catch {
      return false;
    }
  }),
);
const Members = v.custom<Record<string, unknown>>(isObject);
const Icon = v.looseObject({
  src: v.string(),
  mimeType: v.exactOptional(v.string()),
  sizes: v.exactOptional(v.array(v.string())),
  theme: v.exactOptional(v.picklist(["light", "dark"])),
});
/** RFC 3339, with seconds. */
const Moment = v.pipe(v.string(), v.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/));
const Annotations = v.pipe(
  Members,
  v.looseObject({
    audience: v.exactOptional(v.array(v.picklist(["user", "assistant"]))),
    priority: v.exactOptional(v.pipe(v.number(), v.minValue(0), v.maxValue(1))),
    lastModified: v.exactOptional(Moment),
  }),
);

const Resource = v.union([v.looseObject({ uri: v.string(), text: v.string() }), v.looseObject({ uri: v.string(), blob: Base64 })]);

/** Members that a block of each type has to have, and those that it may have (ContentBlock of the protocol, 2026-07-28). Clients refuse a whole answer over one of them. */
const BLOCKS: Readonly<Record<string, v.ObjectEntries>> = {
  text: { text: v.string() },
  image: { data: Base64, mimeType: v.string() },
  audio: { data: Base64, mimeType: v.string() },
  resource_link: { uri: v.string(), name: v.string() },
  resource: { resource: Resource },
};
const MAY_HAVE: v.ObjectEntries = { annotations: Annotations, _meta: Members };
const OF_A_LINK: v.ObjectEntries = {
  ...MAY_HAVE,
  title: v.string(),
  description: v.string(),
  mimeType: v.string(),
  size: v.number(),
  icons: v.array(Icon),
};
const OF_A_RESOURCE: v.ObjectEntries = { mimeType: v.string(), _meta: Members };

/** A server's blocks as every client takes them: what is none is text, and what only describes one, and is not what it has to be, is left out. */
export function blocksOf(content: unknown): Record<string, unknown>[] {
  if (Array.isArray(content)) return content.map((one: unknown) => blockOf(one) ?? textOf(JSON.stringify(one)));
  if (content === undefined || content === null) return [];
  return typeof content === "string" ? [textOf(content)] : blocksOf([content]);
}

export const textOf = (text: string): { readonly type: string; readonly text: string } => ({ type: "text", text });

function blockOf(block: unknown): Record<string, unknown> | null {
  if (!isObject(block)) return null;
  const { type } = block;
  const needed = typeof type === "string" && Object.hasOwn(BLOCKS, type) ? BLOCKS[type]! : null;
  if (needed === null || !v.is(v.looseObject(needed), block)) return null;
  const kept = fitting(block, type === "resource_link" ? OF_A_LINK : MAY_HAVE);
  return type === "resource" ? { ...kept, resource: fitting(block["resource"] as Record<string, unknown>, OF_A_RESOURCE) } : kept;
}

/** Without what may be there, and is something else. */
const fitting = (given: Readonly<Record<string, unknown>>, optional: v.ObjectEntries): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(given).filter(([name, value]) => !Object.hasOwn(optional, name) || v.safeParse(optional[name]!, value).success),
  );
