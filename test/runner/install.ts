import { COMPONENTS, type Component, component } from "./components.ts";

/**
 * Install the Debian packages of components that are missing, where this is root on a machine with apt-get, and build those that are built. Whatever
 * cannot be had stays missing: the tests then skip, or fail where they must not.
 */
export async function installComponents(): Promise<void> {
  await installPackages();
  // Some compute while others wait for what they fetch.
  await Promise.all(
    Object.entries<Component>(COMPONENTS).map(async ([name, { probe, make }]) => {
      if (make === undefined || probe() === null) return;
      console.error(`building ${name}`);
      if (!(await make())) console.error(`${name} could not be built`);
    }),
  );
}

async function installPackages(): Promise<void> {
  const missing = Object.values<Component>(COMPONENTS).filter((entry) => entry.packages !== undefined && entry.probe() !== null);
  const packages = [...new Set(missing.flatMap((entry) => entry.packages ?? []))];
  if (packages.length === 0) return;
  const reason = !component("apt").available ? "there is no apt-get" : !component("root").available ? "not root" : null;
  if (reason !== null) {
    console.error(`not installing ${packages.join(", ")}: ${reason}`);
    return;
  }
  console.error(`installing with apt-get: ${packages.join(", ")}`);
  const install = (): Promise<number> => apt("install", "-y", "-qq", "--no-install-recommends", ...packages);
  // Package lists may be old or not there at all; they are only fetched when needed.
  if ((await install()) !== 0 && ((await apt("update", "-qq")) !== 0 || (await install()) !== 0)) {
    console.error(`apt-get could not install ${packages.join(", ")}`);
  }
}

async function apt(...args: string[]): Promise<number> {
  const child = Bun.spawn(["apt-get", ...args], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    timeout: 300_000,
  });
  return await child.exited;
}
