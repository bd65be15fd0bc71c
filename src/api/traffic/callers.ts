// Who calls: by X-API-Key, by client certificate, or nobody that we know. Distinguished from what they may do, because a
// refused call is written down under its caller's name too.
//
// Keys are those of the configuration and those of the replicated state. Anonymous callers are let in on loopback only, never
// to the routes of operators and of backups, and only where there is no key for a role of that rank or a lower one and no client CA: once somebody
// has a key, the others need one too. A key that is wrong is refused even where none is needed, or a typing mistake would
// pass for a setup that works.
//
// Routes for kinds of certificates have a door of their own (identities.ts).
//
// Invariant: what this node does not know is no answer. A replicated key that is unknown here, or has too low a role here, is
// refused only after this node has applied everything that was committed when it was shown (KeyRounds); and nobody is let in
// unknown before this node has caught up once, for the keys that forbid it may be in what is still to come (decision 25).

import {
  allows,
  allowsSite,
  type ApiKey,
  authorityOf,
  certificateCaller,
  type CertificatePeer,
  type ClientCertificate,
  closes,
  isLoopback,
  parseAddress,
  type Role,
  ROLES,
} from "../../contract/index.ts";
import { API_KEY_LENGTH_MAX } from "../../core/kit/limits.ts";
import { IDENTITY_KINDS, type SpiffeId } from "../../core/kit/spiffe.ts";
import type { Keys } from "../../ports/keys.ts";
import type { Cluster } from "../../ports/cluster.ts";
import { type ForIdentities, hasIdentity, identityRefusal } from "./identities.ts";
import type { KeyRounds } from "./key-rounds.ts";
import type { Registered } from "./passage.ts";
import { Refusal } from "../refusal.ts";

export type Caller =
  | {
      readonly how: "key";
      readonly name: string;
      readonly role: Role;
      /** Of a replicated key. */
      readonly sha256?: string;
    }
  | {
      readonly how: "certificate";
      readonly name: string;
      readonly role: Role;
      /** Null: of another site. */
      readonly identity: SpiffeId | null;
    }
  | { readonly how: "anonymous"; readonly name: "anonymous"; readonly role: null }
  /** Claimed to be somebody, and is not. */
  | {
      readonly how: "refused";
      readonly claimed: "key" | "certificate";
      readonly name: string;
      readonly role: null;
      readonly why: string;
      /** Of what may be a replicated key that this node does not know yet. */
      readonly sha256?: string;
    };

/** As much of a TLS socket as is asked. */
export interface CallerSocket {
  readonly authorized?: boolean;
  getPeerCertificate?: (isDetailed: true) => ClientCertificate & { readonly subject?: unknown };
}

interface Doorman {
  readonly keys: readonly ApiKey[];
  readonly replicated: Keys | null;
  /** A client certificate, by its SHA-256 in lower-case hex. */
  readonly isRevoked: (sha256: string) => boolean;
  readonly cluster: Pick<Cluster, "view" | "currentRole">;
  readonly rounds: KeyRounds;
  readonly nodeId: string;
  readonly isLoopback: boolean;
  /** Reads for certificates are open on loopback. */
  readonly isTcOpen: boolean;
  readonly hasClientCa: boolean;
  readonly sha256: (text: string) => string;
  readonly parseTime: (text: string) => number;
  readonly wallMs: () => number;
  readonly trustDomain: string;
  /** Other sites, with authorities of their own or with this cluster's. */
  readonly peers: () => readonly CertificatePeer[];
}

const ANONYMOUS: Caller = { how: "anonymous", name: "anonymous", role: null };
const UNKNOWN_KEY = {
  how: "refused",
  claimed: "key",
  name: "unknown key",
  role: null,
  why: "The X-API-Key is none that this node knows.",
} as const satisfies Caller;
const REVOKED = "The client certificate was revoked. Connect with another one.";
const EXPIRED = "The client certificate has expired since this connection was made. Connect with a new one.";
/** Who steers the cluster, or takes a copy of all that it knows, is always known. */
const NEVER_OPEN: readonly Role[] = ["operator", "backup"];

export class Callers {
  readonly #doorman: Doorman;
  /** A connection's certificate does not change, and reading one is slow. But it expires or is revoked while the connection stays. */
  #bySocket = new WeakMap<object, { readonly caller: Caller; readonly notAfterMs: number; readonly sha256: string }>();

  /** It has caught up with the cluster once. */
  #hasCaughtUp = false;

  constructor(doorman: Doorman) {
    this.#doorman = doorman;
  }

  /** Where identities count, a certificate is looked at first: who sends an API key with everything still is who its certificate says. */
  identify(
    key: string | readonly string[] | undefined,
    socket: CallerSocket,
    about?: Pick<Registered, "forIdentities">,
  ): Caller {
    const isAboutIdentity = (about?.forIdentities ?? null) !== null;
    const shown = key === undefined || isAboutIdentity ? this.#shown(socket) : ANONYMOUS;
    if (key === undefined || shown.how !== "anonymous") return shown;
    return this.#byKey(typeof key === "string" ? key : "");
  }

  /** Whose certificate the connection has shown. */
  #shown(socket: CallerSocket): Caller {
    if (!this.#doorman.hasClientCa || socket.getPeerCertificate === undefined) return ANONYMOUS;
    let known = this.#bySocket.get(socket);
    if (known === undefined) {
      const certificate = socket.getPeerCertificate(true) ?? {};
      known = {
        caller: this.#byCertificate(socket, certificate),
        notAfterMs: this.#doorman.parseTime(certificate.valid_to ?? ""),
        sha256: (certificate.fingerprint256 ?? "").replaceAll(":", "").toLowerCase(),
      };
      this.#bySocket.set(socket, known);
    }
    const { caller, notAfterMs, sha256 } = known;
    if (caller.how !== "certificate") return caller;
    if (this.#doorman.isRevoked(sha256)) return refusedCertificate(caller.name, REVOKED);
    if (this.#doorman.wallMs() <= notAfterMs) return caller;
    return refusedCertificate(caller.name, EXPIRED);
  }

  /** Who was admitted, as this node knows it now: after a body that took its time, or while a call waits. No hash, no round. */
  now(caller: Caller, socket: CallerSocket): Caller {
    if (caller.how !== "key") return this.identify(undefined, socket);
    return caller.sha256 === undefined ? caller : this.#byHash(caller.sha256);
  }

  /** Until its certificate expires; Infinity for everybody else. */
  admittedForMs(caller: Caller, socket: CallerSocket): number {
    if (caller.how !== "certificate") return Infinity;
    const notAfterMs = this.#bySocket.get(socket)?.notAfterMs ?? Infinity;
    return Math.max(0, notAfterMs - this.#doorman.wallMs() + 1);
  }

  /** What was read of certificates: they are read again. */
  forget(): void {
    this.#bySocket = new WeakMap();
  }

  /**
   * The same caller, or, where this node would refuse a key of the replicated state, who it is by everything that is committed
   * now. Throws CALLER_UNCONFIRMED or OVERLOADED where that can't be known at present.
   */
  async confirmed(
    caller: Caller,
    needed: Role,
    about: Pick<Registered, "isForSites" | "forIdentities">,
  ): Promise<Caller> {
    if (caller.how === "anonymous" || caller.how === "certificate" || caller.sha256 === undefined) return caller;
    // No key would suffice.
    if (about.forIdentities !== null) return caller;
    if (caller.how !== "refused" && (allows(caller.role, needed) || allowsSite(caller.role, about))) return caller;
    await this.#doorman.rounds.next();
    return this.#byHash(caller.sha256);
  }

  /** Throws UNAUTHENTICATED, PERMISSION_DENIED, CALLER_UNCONFIRMED, or what a missing identity is refused with. */
  admit(
    caller: Caller,
    needed: Role,
    about: Pick<Registered, "isOwnView" | "isForSites" | "isAlsoFor" | "forIdentities">,
    host: string | undefined,
  ): void {
    if (about.forIdentities !== null) return this.#admitIdentity(caller, about.forIdentities, host);
    switch (caller.how) {
      case "refused":
        throw this.#unauthenticated(caller.why);
      case "anonymous":
        return this.#admitAnonymous(needed, about.isOwnView, host);
      case "key":
      case "certificate":
        if (allows(caller.role, needed) || allowsSite(caller.role, about)) return;
        if (hasIdentity(caller, { kinds: about.isAlsoFor })) return;
        throw new Refusal(
          "PERMISSION_DENIED",
          `${caller.how === "key" ? "The key" : "The certificate"} ${JSON.stringify(caller.name)} has the role ${caller.role}, and this needs ${needed}.`,
        );
    }
  }

  /** Whether somebody unknown, on loopback, may do what needs this role. */
  isOpen(needed: Role): boolean {
    const { keys, replicated, hasClientCa } = this.#doorman;
    if (NEVER_OPEN.includes(needed) || !this.#doorman.isLoopback || hasClientCa) return false;
    return ![...keys, ...(replicated?.list() ?? [])].some(({ role }) => closes(role, needed));
  }

  /** By rank: none where somebody unknown is not let in at all. */
  anonymousRoles(): readonly Role[] {
    return ROLES.filter((role) => this.isOpen(role));
  }

  #admitIdentity(caller: Caller, asked: ForIdentities, host: string | undefined): void {
    if (hasIdentity(caller, asked)) return;
    const { isTcOpen, isLoopback: isLocal, trustDomain } = this.#doorman;
    if (isTcOpen && isLocal && asked.isRead && (host === undefined || isLoopbackHost(host))) return;
    if (caller.how === "refused" && caller.claimed === "certificate") throw this.#unauthenticated(caller.why);
    throw identityRefusal(caller, asked, trustDomain);
  }

  #admitAnonymous(needed: Role, isOwnView: boolean, host: string | undefined): void {
    const how = this.#doorman.hasClientCa ? "Send X-API-Key, or present a client certificate." : "Send X-API-Key.";
    if (!this.isOpen(needed)) {
      throw this.#unauthenticated(`This needs the role ${needed}, and nobody is known to call. ${how}`);
    }
    if (!isOwnView && !this.#isCaughtUp()) {
      throw new Refusal(
        "CALLER_UNCONFIRMED",
        `Node ${this.#doorman.nodeId} has not caught up with the cluster yet, and does not know which keys there are. Retry, or send the request to another node.`,
        { node_id: this.#doorman.nodeId },
      );
    }
    // A page in a browser of this machine may have pointed its own name at 127.0.0.1.
    if (host !== undefined && !isLoopbackHost(host)) {
      throw this.#unauthenticated(
        "The Host header names no loopback address. Use 127.0.0.1 or localhost, or send X-API-Key.",
      );
    }
  }

  /** What is applied before a first key was made is what everybody could read when it was written. */
  #isCaughtUp(): boolean {
    if (!this.#hasCaughtUp) this.#hasCaughtUp = this.#doorman.cluster.view().isReady;
    return this.#hasCaughtUp;
  }

  /** Whoever asks several nodes takes it as the cluster's word only from its leader, or from all of them. */
  #unauthenticated(why: string): Refusal {
    const { nodeId, cluster } = this.#doorman;
    return new Refusal("UNAUTHENTICATED", why, { node_id: nodeId, role: cluster.currentRole() });
  }

  /** All keys of the configuration are compared, each in full, whichever fits: time tells nothing. */
  #byKey(key: string): Caller {
    if (key.length === 0 || key.length > API_KEY_LENGTH_MAX) return UNKNOWN_KEY;
    const hash = this.#doorman.sha256(key);
    let found: ApiKey | undefined;
    for (const one of this.#doorman.keys) if (isEqual(hash, one.sha256)) found = one;
    if (found !== undefined) return { how: "key", name: found.name, role: found.role };
    return this.#byHash(hash);
  }

  /** Among the replicated ones. Found by its hash: how long that takes tells of hashes, not of keys. */
  #byHash(sha256: string): Caller {
    const { replicated } = this.#doorman;
    const known = replicated?.find(sha256) ?? null;
    if (known !== null) return { how: "key", name: known.name, role: known.role, sha256 };
    return replicated === null ? UNKNOWN_KEY : { ...UNKNOWN_KEY, sha256 };
  }

  #byCertificate(socket: CallerSocket, certificate: ClientCertificate): Caller {
    if (Object.keys(certificate).length === 0) return ANONYMOUS;
    const why = "The client certificate is not signed by this node's client CA, or is not valid now.";
    if (socket.authorized !== true) return refusedCertificate("unverified certificate", why);
    const { trustDomain, peers } = this.#doorman;
    const caller = certificateCaller(certificate, { trustDomain, peers: peers() }, authorityOf(certificate));
    if (caller !== null) {
      const { id: name, role, identity } = caller;
      return { how: "certificate", name, role, identity };
    }
    const wanted = `spiffe://${trustDomain}/${IDENTITY_KINDS.join("|")}/<name>`;
    return refusedCertificate(
      "unknown certificate",
      `The client certificate must have exactly one URI SAN: ${wanted}.`,
    );
  }
}

function refusedCertificate(name: string, why: string): Caller {
  return { how: "refused", claimed: "certificate", name, role: null, why };
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
