import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { FrpPlace, FrpRoom } from "../../../src/domain/frp.ts";
import { frpServer } from "../../../src/transport/frp/place.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const directories = temporaryDirectories();
const PLACE: FrpPlace = { server_addr: "relay.example.edu", server_port: 443, protocol: "wss", stun_server: null };
const ROOM: FrpRoom = { schema_version: "clio-relay.frp-room.v1", name: "0".repeat(32), token: "t", secret: "s", ca: null };
const around = (variables: Record<string, string> = {}) => ({ variables, caFiles: [], directory: directories(), cluster: "far" });

test("with wss the certificate is held against somebody: the system's authorities, or the room's own", () => {
  const surroundings = around();
  const { caFile } = frpServer(PLACE, ROOM, surroundings);
  expect(caFile).toBe(path.join(surroundings.directory, "far-authorities.pem"));
  expect(fs.readFileSync(caFile!, "utf8").match(/BEGIN CERTIFICATE/g)!.length).toBeGreaterThan(50);
  expect(fs.statSync(caFile!).mode & 0o777).toBe(0o600);
  frpServer(PLACE, { ...ROOM, ca: "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n" }, surroundings);
  expect(fs.readFileSync(caFile!, "utf8")).toContain("ours");
  expect(frpServer({ ...PLACE, protocol: "tcp" }, ROOM, around()).caFile).toBeUndefined();
});

test("a proxy is the one that the environment names, for what is TLS and for what is not", () => {
  const secure = { HTTPS_PROXY: "http://desk:p%40ss:word@proxy:3128" };
  expect(frpServer(PLACE, ROOM, around(secure)).proxyUrl).toBe("http://desk:p%40ss%3Aword@proxy:3128");
  expect(frpServer({ ...PLACE, protocol: "tcp" }, ROOM, around(secure)).proxyUrl).toBeUndefined();
  expect(frpServer({ ...PLACE, protocol: "websocket" }, ROOM, around({ http_proxy: "proxy:3128" })).proxyUrl).toBe("http://proxy:3128");
  expect(frpServer(PLACE, ROOM, around({ ...secure, NO_PROXY: "example.edu" })).proxyUrl).toBeUndefined();
  expect(() => frpServer(PLACE, ROOM, around({ HTTPS_PROXY: "https://proxy" }))).toThrow("without TLS");
});
