import type { ListenAddress } from "../../roles/sockets/listener.ts";
import type { Reader } from "../values.ts";

const FORM = /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?))?:(\d{1,5})$/;

/** Where to listen: without a host, on every address of the machine. */
export const listenAddress: Reader<ListenAddress> = {
  label: "[HOST]:PORT",
  form: "an address and a port, or only a port: 127.0.0.1:8080, [::1]:8080, :443",
  read(given) {
    const parts = FORM.exec(given);
    const port = Number(parts?.[3] ?? Number.NaN);
    if (parts === null || port > 65_535) return undefined;
    return { host: parts[1] ?? parts[2] ?? null, port };
  },
};
