import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

/** A certificate with its key, as files in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface Authority {
  /** Its own certificate. */
  readonly file: string;
  /** @param names as subjectAltName has them: `DNS:localhost,IP:127.0.0.1` @param days until it ends; -1: it has ended */
  issue(name: string, names: string, days?: number): Certificate;
}

/** A certification authority of a test's own, in a directory. */
export function authority(directory: string): Authority {
  const openssl = (...args: string[]): void => void execFileSync("openssl", args, { cwd: directory, stdio: "pipe" });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  openssl("req", "-x509", ...newKey, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=an authority of a test");
  return {
    file: path.join(directory, "ca.pem"),
    issue(name, names, days = 30) {
      const [key, request, cert] = [`${name}.key`, `${name}.csr`, `${name}.pem`];
      openssl("req", ...newKey, "-keyout", key, "-out", request, "-subj", `/CN=${name}`, "-addext", `subjectAltName=${names}`);
      const signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-copy_extensions", "copy"];
      openssl("x509", "-req", "-in", request, ...signing, "-days", String(days), "-out", cert);
      fs.rmSync(path.join(directory, request));
      return { cert: path.join(directory, cert), key: path.join(directory, key) };
    },
  };
}
