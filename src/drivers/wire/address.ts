// Addresses of peers: "host:port", "[::1]:port". Without TLS only loopback may be used, by name or by number; whatever
// else a name might resolve to is not known here, so other names count as beyond loopback.

import { isIP } from "node:net";
import { TenureError } from "../../core/kit/errors.ts";
import { PORT_MAX } from "../../core/kit/limits.ts";
import { ADDRESS_BYTES_MAX } from "./limits.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

const PATTERN = /^(?:\[([0-9a-fA-F:.]+(?:%[A-Za-z0-9._-]+)?)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})$/;

export function parseAddress(text: string): Address | undefined {
  if (text.length > ADDRESS_BYTES_MAX) return undefined;
  const [, v6, name, digits] = PATTERN.exec(text) ?? [];
  const port = Number(digits);
  const host = v6 ?? name;
  if (host === undefined || !(port >= 1 && port <= PORT_MAX)) return undefined;
  if (v6 !== undefined && isIP(v6) !== 6) return undefined;
  return { host, port };
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|::ffff:127(\.\d{1,3}){3})$/i.test(host);
}

/** Every address of the machine: good to listen on, useless to dial. */
export function isWildcard(host: string): boolean {
  return host === "" || host === "0.0.0.0" || host === "::" || host === "::0";
}

/** For what the configuration says. */
export function requireAddress(text: string, what: string): Address {
  const address = parseAddress(text);
  if (address !== undefined) return address;
  throw new TenureError(
    "CONFIG_INVALID",
    `${what} is ${JSON.stringify(text)}; write host:port, such as 10.0.0.1:7400.`,
  );
}

/** Each host with what it is for. */
export function requireLoopback(hosts: readonly (readonly [string, string])[]): void {
  const beyond = hosts.filter(([, host]) => !isLoopback(host)).map(([what, host]) => `${what} ${host}`);
  if (beyond.length === 0) return;
  throw new TenureError(
    "CONFIG_INVALID",
    `without TLS, peers may only talk over loopback (127.0.0.1): ${beyond.join("; ")}. Make certificates with tenure cert init and tenure cert issue, and name them in peer.tls.`,
  );
}
