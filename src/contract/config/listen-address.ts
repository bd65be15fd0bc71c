// `host:port` in configurations: a name, an IPv4 address, or an IPv6 address in brackets.

import type { TRefine, TString } from "typebox";
import { Type } from "typebox";
import { PORT_MAX } from "../../core/kit/limits.ts";
import { HOST_PORT_LENGTH_MAX } from "../limits.ts";

export interface ListenAddress {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const HOST_PORT = /^(?:\[([0-9a-fA-F:.]{2,45})\]|([A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)):(\d{1,5})$/;
const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;

export const HostPort: TRefine<TString> = Type.Refine(
  Type.String({ maxLength: HOST_PORT_LENGTH_MAX }),
  (value: string) => parseAddress(value) !== undefined,
  () => 'must be "host:port", such as 127.0.0.1:7400 or [::1]:7400',
);

/** Undefined where it is none. */
export function parseAddress(text: string): ListenAddress | undefined {
  const [, six, name, digits] = HOST_PORT.exec(text) ?? [];
  const host = six ?? name;
  const port = Number(digits);
  if (host === undefined || port > PORT_MAX) return undefined;
  // All digits and dots, and no address: a resolver would wait for a name that can't exist.
  if (/^[\d.]+$/.test(host) && !(IPV4.test(host) && host.split(".").every((part) => Number(part) <= 255)))
    return undefined;
  return { host, port };
}

export function showAddress({ host, port }: ListenAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (IPV4.test(host) && host.startsWith("127."));
}

/** Listens on every interface: nobody can dial that. */
export function isWildcard(host: string): boolean {
  return /^[0:]+$/.test(host) || host === "0.0.0.0";
}
