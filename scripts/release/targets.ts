/** A platform that a release is made for. */
export interface Target {
  /** What follows `clio-relay-` in the file's name. */
  readonly name: string;
  /** Bun's name of it. */
  readonly target: Bun.Build.CompileTarget;
  /** The npm package with the runtime that becomes part of the executable. */
  readonly runtime: string;
  readonly suffix: "" | ".exe";
}

const target = (name: string, runtime: string, suffix: Target["suffix"] = ""): Target => ({
  name,
  target: `bun-${name}` as Bun.Build.CompileTarget,
  runtime: `@oven/bun-${runtime}`,
  suffix,
});

/**
 * All of them. Bun's ordinary runtime for x64 is its baseline one (docs/measured.md), and only the former is a package that the lockfile pins; both
 * names are released, because a site that has processors without AVX2 asks for the second.
 */
export const TARGETS: readonly Target[] = [
  target("linux-x64", "linux-x64"),
  target("linux-x64-baseline", "linux-x64"),
  target("linux-x64-musl", "linux-x64-musl"),
  target("linux-arm64", "linux-aarch64"),
  target("linux-arm64-musl", "linux-aarch64-musl"),
  target("darwin-arm64", "darwin-aarch64"),
  target("darwin-x64", "darwin-x64"),
  target("windows-x64", "windows-x64", ".exe"),
];

/** The file's name in a release. */
export const fileOf = ({ name, suffix }: Target): string => `clio-relay-${name}${suffix}`;
