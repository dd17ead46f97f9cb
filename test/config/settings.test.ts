import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { withOutboundProxy } from "../../src/config/outbound-proxy.ts";
import { loadSettings, SETTINGS } from "../../src/config/settings.ts";
import { readSettingsFile } from "../../src/config/settings-file.ts";
import { isRelayError } from "../../src/domain/errors.ts";
import { LIMITS } from "../../src/domain/limits.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { environment } from "./environments.ts";

const directory = temporaryDirectories();

test("defaults are the limits of the domain", () => {
  expect(loadSettings(environment())).toMatchObject({
    default_cluster: null,
    local_listen: "auto",
    log_stream_max_bytes: LIMITS.logStreamBytes,
    log_job_max_bytes: LIMITS.logJobBytes,
    active_jobs_max: LIMITS.activeJobs,
    artifact_store_max_bytes: LIMITS.artifactStoreBytes,
    min_free_bytes: LIMITS.minFreeBytes,
    cancel_grace_seconds: LIMITS.cancelGraceSeconds,
  });
});

test("environment wins over file, file over default", () => {
  const name = "active_jobs_max";
  const env = environment({ CLIO_RELAY_ACTIVE_JOBS_MAX: "20" });
  const file = { active_jobs_max: 10 };
  expect(loadSettings(environment(), file)[name]).toBe(10);
  expect(loadSettings(env, file)[name]).toBe(20);
});

test("bytes and durations may have units", () => {
  const settings = loadSettings(environment({ CLIO_RELAY_LOG_STREAM_MAX_BYTES: "2GiB", CLIO_RELAY_CANCEL_GRACE_SECONDS: "1m" }), {
    min_free_bytes: "512MiB",
    artifact_store_max_bytes: 0,
  });
  expect(settings).toMatchObject({
    log_stream_max_bytes: 2 ** 31,
    cancel_grace_seconds: 60,
    min_free_bytes: 2 ** 29,
    artifact_store_max_bytes: 0,
  });
});

describe("a bad value is refused, naming where it stands and what it is", () => {
  test.each([
    ["CLIO_RELAY_ACTIVE_JOBS_MAX", "many", "active_jobs_max"],
    ["CLIO_RELAY_ACTIVE_JOBS_MAX", "0", "active_jobs_max"],
    ["CLIO_RELAY_ACTIVE_JOBS_MAX", "-1", "active_jobs_max"],
    ["CLIO_RELAY_LOG_STREAM_MAX_BYTES", "64M", "log_stream_max_bytes"],
    ["CLIO_RELAY_CANCEL_GRACE_SECONDS", "2 h", "cancel_grace_seconds"],
    ["CLIO_RELAY_LOCAL_LISTEN", "http", "local_listen"],
    ["CLIO_RELAY_CLUSTER", "My Cluster", "default_cluster"],
    ["CLIO_RELAY_CLUSTER", "com1", "default_cluster"],
  ])("%s=%s", (variable, value, setting) => {
    let failure: unknown;
    try {
      loadSettings(environment({ [variable]: value }));
    } catch (error) {
      failure = error;
    }
    expect(isRelayError(failure, "configuration_error")).toBe(true);
    expect(failure).toMatchObject({ message: expect.stringContaining(`${variable} is ${JSON.stringify(value)}`), data: { setting } });
  });

  test.each([[{ active_jobs_max: [1] }], [{ active_jobs_max: true }], [{ active_jobs_max: { a: 1 } }], [{ active_jobs_max: 1.5 }]])(
    "config.toml: %j",
    (file) => {
      expect(() => loadSettings(environment(), file)).toThrow("config.toml: active_jobs_max is");
    },
  );

  test.each(["ftp://me:geheim@proxy:1", "me:geheim@proxy", "http://me:geheim@proxy/path"])(
    "a proxy that is none, without repeating it: %s",
    (value) => {
      for (const [variables, file] of [
        [{ CLIO_RELAY_OUTBOUND_PROXY: value }, {}],
        [{}, { outbound_proxy: value }],
      ] as const) {
        let failure: unknown;
        try {
          loadSettings(environment(variables), file);
        } catch (error) {
          failure = error;
        }
        expect(failure).toMatchObject({ code: "configuration_error", data: { setting: "outbound_proxy" } });
        expect((failure as Error).message).not.toContain("geheim");
      }
    },
  );

  test("an unknown key, with what was probably meant", () => {
    let failure: unknown;
    try {
      loadSettings(environment(), { active_job_max: 1 });
    } catch (error) {
      failure = error;
    }
    expect(failure).toMatchObject({ code: "configuration_error", hint: "did you mean active_jobs_max?" });
  });
});

test("the agent's arguments are an array in the file, and the same as JSON in the environment", () => {
  const given = ["run", ["--model", "{model}"]];
  expect(loadSettings(environment(), { agent_args: given }).agent_args).toBe(JSON.stringify(given));
  expect(loadSettings(environment({ CLIO_RELAY_AGENT_ARGS: "[]" }), { agent_args: given }).agent_args).toBe("[]");
  for (const wrong of ["run", [1], [["a", ["b"]]]])
    expect(() => loadSettings(environment(), { agent_args: wrong })).toThrow("config.toml: agent_args");
});

test("a proxy of the settings takes the place of those of the variables, for whoever is given them", () => {
  const env = environment({ HTTPS_PROXY: "http://other:1", http_proxy: "", NO_PROXY: "near" });
  expect(withOutboundProxy(env, { outbound_proxy: null })).toBe(env);
  const own = withOutboundProxy(env, { outbound_proxy: "http://me:word@proxy:3128" });
  const proxies = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"].map((name) => own.variables[name]);
  expect(new Set(proxies)).toEqual(new Set(["http://me:word@proxy:3128"]));
  expect(own.variables["NO_PROXY"]).toBe("near");
});

test("every setting has a variable of its own, named after it, and a default that its own reader takes", () => {
  const variables = Object.values(SETTINGS).map((one) => one.variable);
  expect(new Set(variables).size).toBe(variables.length);
  for (const [name, one] of Object.entries(SETTINGS)) {
    expect(one.variable).toMatch(/^CLIO_RELAY_[A-Z_]+$/);
    expect(one.doc.endsWith(".")).toBe(true);
    if (one.default !== null) expect([name, one.parse(String(one.default))]).toEqual([name, one.default as never]);
  }
});

describe("the file", () => {
  const write = (text: string): { settingsFile: string } => {
    const settingsFile = path.join(directory(), "config.toml");
    fs.writeFileSync(settingsFile, text);
    return { settingsFile };
  };

  test("is read", () => {
    expect(readSettingsFile(write('default_cluster = "a"\nactive_jobs_max = 5\n'))).toEqual({ default_cluster: "a", active_jobs_max: 5 });
  });

  test("need not be there", () => {
    expect(readSettingsFile({ settingsFile: path.join(directory(), "none.toml") })).toEqual({});
  });

  test("that is not TOML is named", () => {
    const paths = write("active_jobs_max = = 5");
    expect(() => readSettingsFile(paths)).toThrow(`${paths.settingsFile} is not TOML`);
  });

  test("that is too large, or no file, is named", () => {
    const paths = write("#".repeat(300 * 1024));
    expect(() => readSettingsFile(paths)).toThrow(`${paths.settingsFile} cannot be read`);
    const settingsFile = directory();
    expect(() => readSettingsFile({ settingsFile })).toThrow(`${settingsFile} cannot be read`);
  });
});
