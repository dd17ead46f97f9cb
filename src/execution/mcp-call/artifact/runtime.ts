import path from "node:path";

/** What a program is that runs another one. `launcher`: whatever it finds, or fetches; `other`: an interpreter of which no package is known here. */
export type Runtime = "python" | "node" | "other" | "launcher";

const NAMES: readonly (readonly [Runtime, RegExp])[] = [
  ["python", /^(?:python|pypy)[\d.]*t?$/],
  ["node", /^(?:node|nodejs|bun)$/],
  ["other", /^(?:deno|ruby|perl|lua|luajit|php|java|julia|R|Rscript|guile|tclsh|busybox|(?:b?a|da|z|k|mk|t?c)?sh|fish)[\d.]*$/],
  [
    "launcher",
    /^(?:npx|npm|pnpm|yarn|bunx|uvx?|pipx|poetry|pdm|hatch|conda|mamba|micromamba|docker|podman|apptainer|singularity|ssh|sudo|doas|env|nice|nohup|setsid|timeout|stdbuf|xargs|srun|systemd-run|fastmcp|mcp|mcp-proxy|mcp-remote|clio-kit|tsx|ts-node|nodemon|pipenv|ipython\d*|uvicorn|gunicorn|hypercorn)$/,
  ],
];

/** Null for a program that stands for itself. */
export function runtimeOf(file: string): Runtime | null {
  const name = path.basename(file);
  return NAMES.find(([, pattern]) => pattern.test(name))?.[0] ?? null;
}
