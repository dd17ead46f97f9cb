import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { describeWith } from "../runner/components.ts";
import { eventually } from "../runner/wait.ts";
import { HOST_FILE, Installing, program, type Run, type RunOptions, SYSTEM, sumsOf } from "./installing.ts";

/** Run the installer, which has to fail, say why, and leave a version that was there as it was. */
async function refused(site: Installing, options: RunOptions, ...why: readonly string[]): Promise<Run> {
  const before = site.installed();
  const run = await site.run(options);
  expect(run.code, run.stdout).toBe(1);
  expect(run.stdout).toBe("");
  for (const words of why) expect(run.stderr).toContain(words);
  expect(site.installed()).toEqual(before);
  // Of temporary files nothing stays, wherever they were.
  expect(fs.readdirSync(site.directory).filter((name) => name.startsWith("clio-relay-install"))).toEqual([]);
  return run;
}

describeWith(["linux", "curl"], "the installer refuses", () => {
  test("a file that is not what SHA256SUMS says, and sums that say nothing usable", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    expect((await site.run()).code).toBe(0);
    site.publish("0.2.0");
    site.files.set(`/${HOST_FILE}`, program("0.2.0-evil"));
    await refused(site, {}, `${HOST_FILE} has SHA-256`, "and SHA256SUMS says");
    const sums = site.files.get("/SHA256SUMS") as string;
    site.files.set("/SHA256SUMS", sums.replaceAll(HOST_FILE, "clio-relay-plan9-mips"));
    await refused(site, {}, `does not name ${HOST_FILE}`);
    for (const damaged of [
      sums.slice(1),
      sums.toUpperCase().replace(HOST_FILE.toUpperCase(), HOST_FILE),
      sums + sumsOf({ [HOST_FILE]: "x" }),
    ]) {
      site.files.set("/SHA256SUMS", damaged);
      await refused(site, {}, "gives no usable digest");
    }
    site.files.set("/SHA256SUMS", "");
    await refused(site, {}, "does not name");
  });

  test("another digest than the one that was asked for, and a word that is none", async () => {
    await using site = new Installing();
    const digest = site.publish("0.1.0");
    await refused(site, { args: ["--sha256", "0".repeat(64)] }, `gives ${digest}`);
    await refused(site, { env: { CLIO_RELAY_SHA256: digest.toUpperCase() } }, "is no SHA-256");
    expect((await site.run({ args: [`--sha256=${digest}`] })).code).toBe(0);
  });

  test("another version than the one that was asked for", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    await refused(site, { args: ["--version", "0.2.0"] }, "that is version 0.1.0, not 0.2.0");
    expect((await site.run({ args: ["--version", "v0.1.0"] })).code).toBe(0);
  });

  test("addresses that are not safe", async () => {
    await using site = new Installing();
    const digest = site.publish("0.1.0");
    const at = (url: string): RunOptions => ({ env: { CLIO_RELAY_BASE_URL: url } });
    await refused(site, at("http://mirror.example/relay"), "can be changed on its way", "--sha256");
    await refused(site, at("https://user:secret@mirror.example/relay"), "list of processes");
    await refused(site, at("file:///srv/relay"), "is no address");
    await refused(site, at("ftp://mirror.example"), "is no address");
    await refused(site, at(`http://127.0.0.1.example.com`), "can be changed on its way");
    await refused(site, { env: { CLIO_RELAY_BASE_URL: undefined } }, "made without the address of its release");
    // With a digest plain HTTP will do: here through a proxy that is this page.
    const plain = { CLIO_RELAY_BASE_URL: "http://mirror.example", http_proxy: site.url };
    expect((await site.run({ env: plain, args: ["--sha256", digest] })).code).toBe(0);
  });

  test("pages that have nothing, break off, redirect to something else, or never end", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    const digest = site.publish("0.1.0");
    for (const name of ["/SHA256SUMS", `/${HOST_FILE}`]) {
      const there = site.files.get(name)!;
      site.files.delete(name);
      await refused(site, {}, `${site.url}${name} could not be downloaded`, "https_proxy");
      site.files.set(name, () => Response.redirect("ftp://127.0.0.1:1/file"));
      await refused(site, {}, "could not be downloaded");
      // More than any such file holds.
      site.files.set(name, () => new Response(endless(name.endsWith("SUMS") ? 4 : 1_100)));
      await refused(site, {});
      site.files.set(name, there);
    }
    site.files.set(`/${HOST_FILE}`, () => new Response("short", { headers: { "content-length": "5000" } }));
    await refused(site, {});
    site.publish("0.1.0");
    expect((await site.run()).code).toBe(0);
    expect(site.installed()).toContain(`share/clio-relay/current -> versions/${digest}`);
  });

  test("a machine without what it needs, by name", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    await refused(site, { env: { PATH: site.tools([...SYSTEM, "sha256sum"]) } }, "neither curl nor wget");
    await refused(site, { env: { PATH: site.tools([...SYSTEM, "curl"]) } }, "none of sha256sum, shasum, openssl and perl");
    await refused(site, { env: { HOME: undefined } }, "HOME is not set");
    await refused(site, { env: { CLIO_RELAY_OFFLINE_DIR: "/nonexistent" } }, "there is no directory /nonexistent");
    await refused(site, { args: ["--frobnicate"] }, "there is no option --frobnicate");
    await refused(site, { args: ["--prefix"] }, "--prefix needs a value");
  });

  test("what is in the way, and what its own places lack", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    await refused(site, { args: ["--version", "0.1 0"] }, "0.1 0 is no version");
    await refused(site, { env: { TMPDIR: "/nonexistent" } }, "no directory for temporary files");
    const offline = path.join(site.directory, "offline");
    fs.mkdirSync(offline);
    await refused(site, { env: { CLIO_RELAY_OFFLINE_DIR: offline } }, `there is no SHA256SUMS in ${offline}`);
    const root = path.join(site.home, ".local/share/clio-relay");
    fs.mkdirSync(path.join(root, "current"), { recursive: true });
    await refused(site, {}, "is in the way");
    fs.rmdirSync(path.join(root, "current"));
    // A queue whose header says that a later schema is its own (sqlite.org/fileformat.html, 1.3).
    const header = Buffer.alloc(100);
    header.writeUInt32BE(99, 60);
    fs.mkdirSync(path.join(root, "core/c"), { recursive: true });
    fs.writeFileSync(path.join(root, "core/c/queue.db"), header);
    const { stderr } = await site.run();
    expect(stderr).toContain("has schema 99, and 0.1.0 knows schemas up to 4");
    expect(stderr).toContain("queue.db.vN.bak");
    expect(fs.existsSync(path.join(root, "current"))).toBe(false);
    fs.rmSync(path.join(root, "core"), { recursive: true });
    expect((await site.run()).code).toBe(0);
  });

  test("systems and processors without a build, and picks the right one for the others", async () => {
    await using site = new Installing();
    const names = ["linux-x64", "linux-x64-musl", "linux-arm64", "linux-arm64-musl", "darwin-arm64", "darwin-x64"].map(
      (name) => `clio-relay-${name}`,
    );
    site.files.set("/SHA256SUMS", sumsOf(Object.fromEntries([...names, "clio-relay-linux-x64-baseline"].map((name) => [name, name]))));
    const system = [...SYSTEM, "curl", "sha256sum"];
    const on = (os: string, machine: string, own: Record<string, string> = {}): RunOptions => ({
      args: ["--dry-run"],
      env: { PATH: site.tools(system, { uname: `case $1 in -s) echo ${os} ;; -m) echo ${machine} ;; *) echo host ;; esac`, ...own }) },
    });
    const glibc = (version: string) => ({ getconf: `case $1 in GNU_LIBC_VERSION) echo glibc ${version} ;; *) echo 64 ;; esac` });
    const musl = { getconf: "[ $1 = LONG_BIT ] && echo 64", ldd: "echo 'musl libc (x86_64)' >&2; exit 1" };
    const picked = async (options: RunOptions): Promise<string | undefined> => /^file +(\S+)$/m.exec((await site.run(options)).stdout)?.[1];
    expect(await picked(on("Linux", "aarch64", glibc("2.36")))).toBe("clio-relay-linux-arm64");
    expect(await picked(on("Linux", "aarch64", musl))).toBe("clio-relay-linux-arm64-musl");
    expect(await picked(on("Linux", "x86_64", musl))).toBe("clio-relay-linux-x64-musl");
    expect(await picked(on("Darwin", "arm64", { sysctl: "echo 0" }))).toBe("clio-relay-darwin-arm64");
    expect(await picked(on("Darwin", "x86_64", { sysctl: "echo 0" }))).toBe("clio-relay-darwin-x64");
    expect(await picked(on("Darwin", "x86_64", { sysctl: "echo 1" }))).toBe("clio-relay-darwin-arm64");
    expect(await picked(on("Linux", "aarch64", glibc("2.17")))).toBe("clio-relay-linux-arm64");
    await refused(site, on("Linux", "aarch64", glibc("2.12")), "2.17 is the oldest");
    await refused(site, on("Linux", "ppc64le", glibc("2.36")), "no build for processors of kind ppc64le");
    await refused(site, on("FreeBSD", "amd64"), "no build for FreeBSD");
    await refused(site, on("MINGW64_NT-10.0", "x86_64"), "clio-relay-windows-x64.exe");
    await refused(site, on("Linux", "x86_64", { getconf: "echo 32" }), "have 32 bits");
    await refused(
      site,
      on("Linux", "x86_64", { getconf: "[ $1 = LONG_BIT ] && echo 64", ldd: "exit 1" }),
      "neither the GNU C library nor musl",
    );
  });

  test("to leave anything of a run that is interrupted", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    site.files.set(`/${HOST_FILE}`, () => new Response(new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array(1000)) })));
    const child = site.start({ shell: ["setsid", "sh"] });
    await eventually(() => site.requests.includes(`/${HOST_FILE}`), { what: "the download" });
    // As the terminal does for Ctrl-C: everybody in the foreground.
    process.kill(-child.pid, "SIGTERM");
    expect(await child.exited).not.toBe(0);
    expect(fs.readdirSync(path.join(site.home, ".local/share/clio-relay/versions"))).toEqual([]);
    expect(fs.readdirSync(site.directory).filter((name) => name.startsWith("clio-relay-install"))).toEqual([]);
    site.publish("0.1.0");
    expect((await site.run()).code).toBe(0);
  });
});

for (const name of ["curl", "wget"] as const) {
  describeWith([name, "openssl"], "the installer makes do", () => {
    test(`with ${name} alone, and with openssl, perl or shasum for the digest`, async () => {
      for (const digester of [["openssl"], ["perl"], ["shasum", "perl"]]) {
        if (digester.some((tool) => Bun.which(tool) === null)) continue;
        await using site = new Installing();
        site.publish("0.1.0");
        const env = { PATH: site.tools([...SYSTEM, name, ...digester]) };
        const run = await site.run({ env });
        expect(run, run.stderr).toMatchObject({ code: 0 });
        site.publish("0.2.0");
        site.files.set(`/${HOST_FILE}`, "tampered");
        await refused(site, { env }, "and SHA256SUMS says");
      }
    });

    test(`with ${name} over https, by the authorities that the environment names, and by no others`, async () => {
      await using site = new Installing();
      site.publish("0.1.0");
      const [key, cert] = ["key.pem", "cert.pem"].map((file) => path.join(site.directory, file)) as [string, string];
      const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"];
      spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...subject]);
      const page = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        tls: { key: Bun.file(key), cert: Bun.file(cert) },
        fetch: (request) => new Response(site.files.get(new URL(request.url).pathname) as string),
      });
      try {
        const env = { PATH: site.tools([...SYSTEM, name, "sha256sum"]), CLIO_RELAY_BASE_URL: `https://localhost:${page.port}` };
        await refused(site, { env }, "could not be downloaded");
        const ours = name === "curl" ? { SSL_CERT_FILE: cert, CURL_CA_BUNDLE: cert } : { WGETRC: path.join(site.directory, "wgetrc") };
        if (name === "wget") fs.writeFileSync(path.join(site.directory, "wgetrc"), `ca_certificate = ${cert}\n`);
        const run = await site.run({ env: { ...env, ...ours } });
        expect(run, run.stderr).toMatchObject({ code: 0 });
      } finally {
        await page.stop(true);
      }
    });
  });
}

describeWith("busybox", "the installer makes do", () => {
  test("with nothing but what busybox has", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    const directory = fs.mkdtempSync(path.join(site.directory, "busybox-"));
    spawnSync("busybox", ["--install", "-s", directory]);
    for (const name of ["getconf", "ldd"]) fs.symlinkSync(Bun.which(name)!, path.join(directory, name));
    const run = await site.run({ shell: [path.join(directory, "ash")], env: { PATH: directory } });
    expect(run, run.stderr).toMatchObject({ code: 0 });
    site.files.delete("/SHA256SUMS");
    await refused(site, { shell: [path.join(directory, "ash")], env: { PATH: directory } }, "could not be downloaded");
  });
});

describeWith(["linux", "root", "curl"], "the installer, as root", () => {
  test("refuses under sudo, doas and pkexec, and says how a container goes on", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    for (const name of ["SUDO_USER", "DOAS_USER", "PKEXEC_UID"]) {
      await refused(site, { env: { [name]: "somebody" } }, "without sudo", "CLIO_RELAY_ALLOW_ROOT=1");
    }
    expect((await site.run({ env: { SUDO_USER: "somebody", CLIO_RELAY_ALLOW_ROOT: "1" } })).code).toBe(0);
  });

  test("takes over the lock of an installation that was killed, also where there is no /proc", async () => {
    await using site = new Installing();
    site.files.set("/clio-relay-linux-x64", program("0.1.0"));
    site.files.set("/clio-relay-linux-arm64", program("0.1.0"));
    site.files.set("/SHA256SUMS", sumsOf({ "clio-relay-linux-x64": program("0.1.0"), "clio-relay-linux-arm64": program("0.1.0") }));
    const state = path.join(site.home, ".local/share/clio-relay/bootstrap");
    fs.mkdirSync(state, { recursive: true });
    const child = Bun.spawn(["true"]);
    await child.exited;
    fs.symlinkSync(`${os.hostname()}::${child.pid}::killed`, path.join(state, "lock"));
    const run = await site.run({ shell: ["unshare", "--mount", "sh", "-c", `mount -t tmpfs none /proc && exec sh "$@"`, "sh"] });
    expect(run, run.stderr).toMatchObject({ code: 0 });
    expect(fs.existsSync(path.join(state, "lock"))).toBe(false);
  });

  test("takes the baseline build for a processor without AVX2, and refuses one that is older still", async () => {
    await using site = new Installing();
    site.files.set(
      "/SHA256SUMS",
      sumsOf({ "clio-relay-linux-x64": "1", "clio-relay-linux-x64-baseline": "2", "clio-relay-linux-x64-musl": "3" }),
    );
    const cpuinfo = path.join(site.directory, "cpuinfo");
    const uname = "case $1 in -s) echo Linux ;; -m) echo x86_64 ;; *) echo host ;; esac";
    const with64 = { uname, getconf: "case $1 in GNU_LIBC_VERSION) echo glibc 2.36 ;; *) echo 64 ;; esac" };
    const withFlags = (flags: string): RunOptions => {
      fs.writeFileSync(cpuinfo, `processor\t: 0\nflags\t\t: ${flags}\n`);
      const shell = ["unshare", "--mount", "sh", "-c", `mount --bind ${cpuinfo} /proc/cpuinfo && exec sh "$@"`, "sh"];
      return { shell, args: ["--dry-run"], env: { PATH: `${site.tools([], with64)}:${process.env.PATH}` } };
    };
    expect((await site.run(withFlags("fpu sse4_2 avx avx2"))).stdout).toContain("clio-relay-linux-x64\n");
    expect((await site.run(withFlags("fpu sse4_2 avx"))).stdout).toContain("clio-relay-linux-x64-baseline\n");
    await refused(site, withFlags("fpu sse2"), "lacks SSE 4.2");
  });
});

describeWith(["tmpfs", "curl"], "the installer, on a file system", () => {
  function mounted(options: string, at: string): Disposable {
    fs.mkdirSync(at);
    if (spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", at]).status !== 0) throw new Error("the tmpfs could not be mounted");
    return { [Symbol.dispose]: () => void spawnSync("umount", ["-l", at]) };
  }

  test("that is full, says so before it begins, and leaves nothing when the space goes meanwhile", async () => {
    await using site = new Installing();
    site.publish("0.1.0", program("0.1.0") + "#".repeat(2_000_000));
    const prefix = path.join(site.directory, "small");
    using _ = mounted("size=1m", prefix);
    await refused(site, { args: ["--prefix", prefix] }, "150 MB are needed");
    expect(fs.readdirSync(prefix)).toEqual([]);
    const PATH = `${site.tools([], { df: "echo; echo fs 9 9 999999999 9 /" })}:${process.env.PATH}`;
    await refused(site, { args: ["--prefix", prefix], env: { PATH } }, "could not be downloaded");
    expect(site.installed(prefix)).toEqual([]);
  });

  test("where nothing may be executed, says so, and what was current stays", async () => {
    await using site = new Installing();
    const digest = site.publish("0.1.0");
    const prefix = path.join(site.directory, "noexec");
    using _ = mounted("size=300m", prefix);
    expect((await site.run({ args: ["--prefix", prefix] })).code).toBe(0);
    spawnSync("mount", ["-o", "remount,noexec", prefix]);
    site.publish("0.2.0");
    await refused(site, { args: ["--prefix", prefix] }, "does not start here", "noexec");
    expect(fs.readlinkSync(path.join(prefix, "share/clio-relay/current"))).toBe(`versions/${digest}`);
    spawnSync("mount", ["-o", "remount,ro,exec", prefix]);
    await refused(site, { args: ["--prefix", prefix] }, "cannot");
  });
});

/** That many MiB, piece by piece. */
function endless(mebibytes: number): ReadableStream<Uint8Array> {
  let left = mebibytes;
  return new ReadableStream({
    pull(stream) {
      if (left-- > 0) stream.enqueue(new Uint8Array(1024 * 1024));
      else stream.close();
    },
  });
}
