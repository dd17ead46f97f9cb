import fs from "node:fs";
import path from "node:path";

/** Targets of the links of a Markdown text, those in code left out. */
export function linksOf(markdown: string): string[] {
  const prose = markdown.replace(/^```[\s\S]*?^```/gm, "").replace(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
}

/** The anchor that a heading gets. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-");

const anchorsIn = (markdown: string): string[] =>
  [...markdown.replace(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!));

/** Links of a document that lead nowhere. Links to other sites are not followed. */
export function brokenLinks(root: string, file: string): string[] {
  const text = fs.readFileSync(path.join(root, file), "utf8");
  return linksOf(text).filter((target) => {
    if (/^[a-z]+:/i.test(target)) return false;
    const [place, anchor] = target.split("#");
    const other = place === "" ? file : path.join(path.dirname(file), place!);
    if (!fs.existsSync(path.join(root, other))) return true;
    return anchor !== undefined && !anchorsIn(fs.readFileSync(path.join(root, other), "utf8")).includes(anchor);
  });
}

/** Directories that the tree of docs/architecture.md shows directly below `src/`. */
export function treeOfSrc(architecture: string): string[] {
  const tree = /^```\nsrc\/\n([\s\S]*?)^```/m.exec(architecture)?.[1] ?? "";
  return [...tree.matchAll(/^ {2}([\w.-]+\/?)(?= |$)/gm)].map(([, name]) => name!.replace(/\/$/, ""));
}
