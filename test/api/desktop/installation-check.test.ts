import { expect, test } from "bun:test";
import { refuseOtherRegistry, registryHeader } from "../../../src/api/desktop/installation-check.ts";

test("what a request says of its registry is compared, and goes no further", () => {
  const headers = new Headers({ ...registryHeader("/tmp/é/../x.json"), accept: "*/*" });
  refuseOtherRegistry(headers, "/tmp/x.json");
  expect([...headers.keys()]).toEqual(["accept"]);
  expect(() => refuseOtherRegistry(new Headers(registryHeader("/tmp/y.json")), "/tmp/x.json")).toThrow(
    expect.objectContaining({ code: "configuration_error", data: { served: "/tmp/x.json", meant: "/tmp/y.json" } }),
  );
  expect(() => refuseOtherRegistry(new Headers({ "clio-relay-registry": "%E0%A4%A" }), "/tmp/x.json")).toThrow(
    expect.objectContaining({ code: "http_request_malformed" }),
  );
});
