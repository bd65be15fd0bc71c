// Who calls: by X-API-Key, by client certificate, or nobody that we know. Told apart from what they may do, because a
// refused call is written down under its caller's name too.
//
// Keys are those of the configuration and those of the replicated state. Anonymous callers are let in on loopback only, never
// to operator routes, and only where there is no key for a role of that rank or a lower one and no client CA: once somebody
// has a key, the others need one too. A key that is wrong is refused even where none is needed, or a typing mistake would
// pass for a setup that works.

import {
  allows,
  type ApiKey,
  certificateCaller,
  type ClientCertificate,
  closes,
  isLoopback,
  parseAddress,
  type Role,
  ROLES,
} from "../contract/index.ts";
import type { Keys } from "../ports/keys.ts";
import { Refusal } from "./refusal.ts";

export type Caller =
  | { readonly how: "key" | "certificate"; readonly name: string; readonly role: Role }
  | { readonly how: "anonymous"; readonly name: "anonymous"; readonly role: null }
  /** Claimed to be somebody, and is not. */
  | { readonly how: "refused"; readonly name: string; readonly role: null; readonly why: string };

/** As much of a TLS socket as is asked. */
export interface CallerSocket {
  readonly authorized?: boolean;
  getPeerCertificate?: () => ClientCertificate & { readonly subject?: unknown };
}

interface Doorman {
  readonly keys: readonly ApiKey[];
  readonly replicated: Keys | null;
  readonly isLoopback: boolean;
  readonly hasClientCa: boolean;
  readonly sha256: (text: string) => string;
  readonly parseTime: (text: string) => number;
  readonly wallMs: () => number;
  readonly trustDomain: string;
}

const ANONYMOUS: Caller = { how: "anonymous", name: "anonymous", role: null };
const KEY_LENGTH_MAX = 1_024;

export class Callers {
  readonly #doorman: Doorman;
  /** A connection's certificate does not change, and reading one is slow. Only that it expires while the connection stays. */
  #bySocket = new WeakMap<object, { readonly caller: Caller; readonly notAfterMs: number }>();

  constructor(doorman: Doorman) {
    this.#doorman = doorman;
  }

  identify(key: string | readonly string[] | undefined, socket: CallerSocket): Caller {
    if (key !== undefined) return this.#byKey(typeof key === "string" ? key : "");
    if (!this.#doorman.hasClientCa || socket.getPeerCertificate === undefined) return ANONYMOUS;
    let known = this.#bySocket.get(socket);
    if (known === undefined) {
      const certificate = socket.getPeerCertificate() ?? {};
      known = {
        caller: this.#byCertificate(socket, certificate),
        notAfterMs: this.#doorman.parseTime(certificate.valid_to ?? ""),
      };
      this.#bySocket.set(socket, known);
    }
    const { caller, notAfterMs } = known;
    if (caller.how !== "certificate" || this.#doorman.wallMs() <= notAfterMs) return caller;
    const why = "The client certificate has expired since this connection was made. Connect with a new one.";
    return { how: "refused", name: caller.name, role: null, why };
  }

  /** What was read of certificates: they are read again. */
  forget(): void {
    this.#bySocket = new WeakMap();
  }

  /** Throws UNAUTHENTICATED or PERMISSION_DENIED. */
  admit(caller: Caller, needed: Role, host: string | undefined): void {
    switch (caller.how) {
      case "refused":
        throw new Refusal("UNAUTHENTICATED", caller.why);
      case "anonymous":
        return this.#admitAnonymous(needed, host);
      case "key":
      case "certificate":
        if (allows(caller.role, needed)) return;
        throw new Refusal(
          "PERMISSION_DENIED",
          `${caller.how === "key" ? "The key" : "The certificate"} ${JSON.stringify(caller.name)} has the role ${caller.role}, and this needs ${needed}.`,
        );
    }
  }

  /** Whether somebody unknown, on loopback, may do what needs this role. */
  isOpen(needed: Role): boolean {
    const { keys, replicated, hasClientCa } = this.#doorman;
    if (needed === "operator" || !this.#doorman.isLoopback || hasClientCa) return false;
    return ![...keys, ...(replicated?.list() ?? [])].some(({ role }) => closes(role, needed));
  }

  /** By rank: none where somebody unknown is not let in at all. */
  anonymousRoles(): readonly Role[] {
    return ROLES.filter((role) => this.isOpen(role));
  }

  #admitAnonymous(needed: Role, host: string | undefined): void {
    if (!this.isOpen(needed)) {
      const how = this.#doorman.hasClientCa ? "Send X-API-Key, or present a client certificate." : "Send X-API-Key.";
      throw new Refusal("UNAUTHENTICATED", `This needs the role ${needed}, and nobody is known to call. ${how}`);
    }
    // A page in a browser of this machine may have pointed its own name at 127.0.0.1.
    if (host !== undefined && !isLoopbackHost(host)) {
      throw new Refusal(
        "UNAUTHENTICATED",
        "The Host header names no loopback address. Use 127.0.0.1 or localhost, or send X-API-Key.",
      );
    }
  }

  /** All keys of the configuration are compared, each in full, whichever fits: time tells nothing. */
  #byKey(key: string): Caller {
    const hash = key.length > KEY_LENGTH_MAX ? "" : this.#doorman.sha256(key);
    let found: ApiKey | undefined;
    for (const one of this.#doorman.keys) if (isEqual(hash, one.sha256)) found = one;
    // Found by its hash: how long that takes tells of hashes, not of keys.
    const known = found ?? this.#doorman.replicated?.find(hash) ?? undefined;
    if (known !== undefined) return { how: "key", name: known.name, role: known.role };
    return { how: "refused", name: "unknown key", role: null, why: "The X-API-Key is none that this node knows." };
  }

  #byCertificate(socket: CallerSocket, certificate: ClientCertificate): Caller {
    if (Object.keys(certificate).length === 0) return ANONYMOUS;
    const why = "The client certificate is not signed by this node's client CA, or is not valid now.";
    if (socket.authorized !== true) return { how: "refused", name: "unverified certificate", role: null, why };
    const { trustDomain } = this.#doorman;
    const caller = certificateCaller(certificate, trustDomain);
    if (caller !== null) return { how: "certificate", name: caller.id, role: caller.role };
    return {
      how: "refused",
      name: "unknown certificate",
      role: null,
      why: `The client certificate must have exactly one URI SAN: spiffe://${trustDomain}/operator/<name>, or /submitter/, /agent/, /sdk/, /viewer/, /server/.`,
    };
  }
}

function isEqual(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) difference |= (a.charCodeAt(i) || 0) ^ b.charCodeAt(i);
  return difference === 0;
}

function isLoopbackHost(host: string): boolean {
  const address = parseAddress(/:\d+$/.test(host) ? host : `${host}:0`);
  return address !== undefined && isLoopback(address.host.toLowerCase());
}
