import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { freePort } from "./free-port.ts";

export interface EdgeOptions {
  readonly certificate: { readonly cert: string; readonly key: string };
  /** Where the relay-host listens behind it, on loopback. */
  readonly port: number;
  /** What it hands on; `/relay/` when left out. */
  readonly location?: string;
  /** After so many seconds without a byte it cuts, as the common edges do. */
  readonly idleSeconds?: number;
}

/** An HTTPS edge: nginx with TLS that hands what is below `/relay/` on, WebSockets included, to a relay-host behind it. */
export class NginxEdge implements AsyncDisposable {
  readonly #files = temporaryDirectory();
  #child: Bun.Subprocess | null = null;

  private constructor(readonly port: number) {}

  static async start({ certificate, port, location = "/relay/", idleSeconds = 100 }: EdgeOptions): Promise<NginxEdge> {
    const edge = new NginxEdge(await freePort());
    const configuration = `
daemon off; master_process off; pid ${edge.#at("pid")}; error_log ${edge.#at("error.log")};
events { worker_connections 512; }
http {
  access_log off; client_body_temp_path ${edge.#at("body")}; proxy_temp_path ${edge.#at("proxy")};
  fastcgi_temp_path ${edge.#at("a")}; uwsgi_temp_path ${edge.#at("b")}; scgi_temp_path ${edge.#at("c")};
  server {
    listen 127.0.0.1:${edge.port} ssl; ssl_certificate ${certificate.cert}; ssl_certificate_key ${certificate.key};
    location ${location} {
      proxy_pass http://127.0.0.1:${port}; proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_read_timeout ${idleSeconds}s; proxy_send_timeout ${idleSeconds}s;
    }
  }
}
`;
    fs.writeFileSync(edge.#at("nginx.conf"), configuration);
    await edge.restart();
    return edge;
  }

  #at(name: string): string {
    return path.join(this.#files.path, name);
  }

  /** Kill it where it runs, and start it. */
  async restart(): Promise<void> {
    await this.#end();
    this.#child = Bun.spawn(["nginx", "-p", this.#files.path, "-c", this.#at("nginx.conf")], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    await eventually(() => answers(this.port), { what: "an nginx that listens" });
  }

  async #end(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#child?.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
    this.#files[Symbol.dispose]();
  }
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    const done = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => done(true));
    socket.once("error", () => done(false));
  });
