import { expect, test } from "bun:test";
import { type RelayHostUnit, relayHostUnit } from "../../../src/roles/relay-host/unit.ts";

const unit = (change: Partial<RelayHostUnit> = {}): string =>
  relayHostUnit({
    executable: "/usr/local/bin/clio-relay",
    listen: ["--listen", ":443", "--name", "a%b:443"],
    token: "/etc/clio-relay/relay-host.token",
    tls: { cert: "/etc/ssl/re lay.pem", key: "/etc/ssl/100%.key" },
    lowPort: true,
    home: "/etc/clio-relay",
    ...change,
  });

test("secrets are credentials, never words of a command line; what systemd would read as more than itself is escaped", () => {
  const text = unit();
  expect(text).toContain("LoadCredential=token:/etc/clio-relay/relay-host.token\n");
  expect(text).toContain("LoadCredential=tls-cert:/etc/ssl/re lay.pem\n");
  expect(text).toContain("LoadCredential=tls-key:/etc/ssl/100%%.key\n");
  const [start] = /^ExecStart=.*$/m.exec(text)!;
  expect(start).toBe(
    'ExecStart=/usr/local/bin/clio-relay relay-host serve "--listen" ":443" "--name" "a%%b:443" --token-file "${CREDENTIALS_DIRECTORY}/token" ' +
      '--tls-cert "${CREDENTIALS_DIRECTORY}/tls-cert" --tls-key "${CREDENTIALS_DIRECTORY}/tls-key"',
  );
  expect(text).toContain("DynamicUser=yes\n");
  expect(text).toMatch(/^Environment="GLIBC_TUNABLES=[\w.=]+"$/m);
});

test("it may bind a low port only where it has to", () => {
  expect(unit()).toContain("AmbientCapabilities=CAP_NET_BIND_SERVICE\n");
  const high = unit({ lowPort: false, tls: null });
  expect(high).toContain("CapabilityBoundingSet=\nAmbientCapabilities=\n");
  expect(high).not.toContain("tls-");
});
