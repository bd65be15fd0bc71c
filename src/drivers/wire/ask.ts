// Which cluster is this? Asked by a node that has no disk yet: to join, or, before it founds one, to see whether there is
// one already. The acceptor names its cluster and closes; it takes no part in anything else. Only those are believed that TLS has
// proved, by their certificate or by the secret.

import { setTimeout as sleep } from "node:timers/promises";
import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { type Address, requireAddress, requireLoopback } from "./address.ts";
import { Dial, type DialFailure } from "./dial.ts";
import { PROTOCOL_MAX, PROTOCOL_MIN, type Refuse } from "./handshake/hello.ts";
import { ASK_INTERVAL_MS, CONTRADICTION_MS, SILENT_SEED_MS } from "./limits.ts";
import { type RefusalReason, Refusals } from "./refusals.ts";
import type { Channel } from "./handshake/security.ts";
import { channelOf, type WireOptions } from "./tcp-wire.ts";

/** A node that says so might say more another time. */
const PASSING: ReadonlySet<RefusalReason> = new Set(["handshake-timeout", "starting"]);
const OF_CERTIFICATES: ReadonlySet<RefusalReason> = new Set(["certificate", "certificate-identity", "tls"]);

export type AskOptions = Pick<WireOptions, "nodeId" | "seeds" | "tls" | "secret" | "logger">;

/** Asks until somebody answers. Rejects with CLUSTER_MISMATCH where two say different things, or with the signal's reason. */
export async function askCluster(
  options: AskOptions & { readonly signal: AbortSignal },
): Promise<{ clusterId: string }> {
  const { signal } = options;
  signal.throwIfAborted();
  const asking = new Asking(options);
  if (asking.isAlone) {
    throw new TenureError(
      "CONFIG_INVALID",
      `node ${options.nodeId} has an empty data directory and knows no peers to join. Name them in "peers", or found a new cluster with --bootstrap.`,
    );
  }
  try {
    return { clusterId: await asking.until(signal) };
  } finally {
    asking.end();
  }
}

export interface ProbeOptions extends AskOptions {
  readonly waitMs: number;
  /** How long a seed that takes connections and sends nothing is waited for. */
  readonly silentMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The cluster that any seed reports; null where after so long nobody is there at all. A seed that takes the connection and
 * does not answer, because it is frozen or overloaded, is waited for: it may have a cluster, and a second one must not be
 * founded next to it. One that never sent a byte for `silentMs` is absent: that is what a proxy in front of a node that is not
 * up looks like. It rejects where after so long the only answer was a refusal, or was not of our protocol, with
 * CERTIFICATE_INVALID or CONFIG_INVALID and what has to be corrected. Rejects where the signal aborts.
 */
export async function probeCluster(options: ProbeOptions): Promise<string | null> {
  const asking = new Asking(options);
  if (asking.isAlone) return null;
  const enough = new AbortController();
  const signal = AbortSignal.any([enough.signal, ...(options.signal === undefined ? [] : [options.signal])]);
  try {
    return await Promise.race([
      asking.until(signal),
      asking.nobody(options.waitMs, options.silentMs ?? SILENT_SEED_MS, signal),
    ]);
  } finally {
    enough.abort();
    asking.end();
  }
}

class Asking {
  readonly #options: AskOptions;
  readonly #channel: Channel | null;
  readonly #refusals: Refusals;
  readonly #seeds: readonly (readonly [string, Address])[];
  readonly #dials = new Set<Dial>();
  /** By node id, what it said. */
  readonly #answers = new Map<string, string>();
  /** Seeds whose last dial found nobody. */
  readonly #absent = new Set<string>();
  /** Seeds that took a connection and sent nothing on it, since when; until they say anything. */
  readonly #silentSinceMs = new Map<string, number>();
  /** Seeds that answered, though not what was asked: whatever becomes of them now, somebody is there. */
  readonly #refused = new Map<string, Refuse>();

  constructor(options: AskOptions) {
    this.#options = options;
    this.#channel = channelOf(options);
    this.#refusals = new Refusals(options.logger);
    this.#seeds = Object.entries(options.seeds)
      .filter(([id]) => id !== options.nodeId)
      .map(([id, text]) => [id, requireAddress(text, `the address of peer ${id}`)] as const);
    if (options.tls === null) requireLoopback(this.#seeds.map(([id, { host }]) => [`peer ${id} is at`, host]));
  }

  get isAlone(): boolean {
    return this.#seeds.length === 0;
  }

  async until(signal: AbortSignal): Promise<string> {
    const loops = this.#seeds.map(([nodeId, address]) => this.#askSeed(nodeId, address, signal));
    await Promise.race(loops);
    signal.throwIfAborted();
    // One has answered. Whoever lives answers within milliseconds, and a contradiction must not be missed.
    await Promise.race([Promise.all(loops), sleep(CONTRADICTION_MS, undefined, { signal }).catch(() => undefined)]);
    return this.#agreed();
  }

  /**
   * Resolves when so long has passed and every seed was found absent or has been silent for too long, and rejects where one of
   * them refuses; neither once somebody has answered.
   */
  async nobody(afterMs: number, silentMs: number, signal: AbortSignal): Promise<null> {
    const { logger } = this.#options;
    await sleep(afterMs, undefined, { signal });
    for (let isReported = false; ; isReported = true) {
      const [refused] = this.#refused;
      if (refused !== undefined && this.#answers.size === 0) throw notFounding(...refused);
      const maybe = this.#seeds.map(([nodeId]) => nodeId).filter((nodeId) => !this.#absent.has(nodeId));
      const nowMs = performance.now();
      const present = maybe.filter((nodeId) => nowMs - (this.#silentSinceMs.get(nodeId) ?? nowMs) < silentMs);
      if (present.length === 0) {
        if (maybe.length > 0) {
          const why = `${maybe.join(", ")} took connections and sent nothing for ${silentMs} ms: taken for a proxy in front of nodes that are not up`;
          logger.warn({ event: "silent-peers-absent", peers: maybe.join(",") }, why);
        }
        return null;
      }
      if (!isReported) {
        const why = `no cluster is founded while ${present.join(", ")} may be there and does not answer; waiting for an answer`;
        logger.warn({ event: "founding-delayed", peers: present.join(",") }, why);
      }
      await sleep(ASK_INTERVAL_MS, undefined, { signal });
    }
  }

  end(): void {
    for (const dial of this.#dials) dial.cancel();
    this.#dials.clear();
  }

  #agreed(): string {
    const [first, ...others] = [...this.#answers];
    const other = others.find(([, clusterId]) => clusterId !== first![1]);
    if (other === undefined) return first![1];
    throw new TenureError(
      "CLUSTER_MISMATCH",
      `the peers belong to different clusters: ${first![0]} to ${first![1]}, ${other[0]} to ${other[1]}. Name only the nodes of one cluster in "peers".`,
    );
  }

  async #askSeed(nodeId: string, address: Address, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const clusterId = await this.#askOnce(nodeId, address, signal);
      if (clusterId !== null) {
        this.#answers.set(nodeId, clusterId);
        this.#absent.delete(nodeId);
        this.#silentSinceMs.delete(nodeId);
        this.#refused.delete(nodeId);
        return;
      }
      await sleep(ASK_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  #askOnce(nodeId: string, address: Address, signal: AbortSignal): Promise<string | null> {
    return new Promise((resolve) => {
      const onAbort = (): void => {
        dial.cancel();
        resolve(null);
      };
      const over = (clusterId: string | null): void => {
        signal.removeEventListener("abort", onAbort);
        this.#dials.delete(dial);
        resolve(clusterId);
      };
      const hello = {
        clusterId: "",
        nodeId: this.#options.nodeId,
        incarnation: "",
        address: "",
        apiUrl: null,
        leaseEnabled: false,
        protocolMin: PROTOCOL_MIN,
        protocolMax: PROTOCOL_MAX,
        purpose: "ask",
      } as const;
      const dial = new Dial({ address, nodeId, lastIp: null }, hello, this.#channel, {
        connected: (connection, ack) => {
          connection.close();
          over(ack.clusterId);
        },
        failed: (failure) => {
          this.#note(nodeId, failure);
          over(null);
        },
      });
      this.#dials.add(dial);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Somebody who is not there yet is normal; somebody who refuses has to be corrected. */
  #note(nodeId: string, failure: DialFailure): void {
    if (failure.kind === "unreachable") this.#absent.add(nodeId);
    else this.#absent.delete(nodeId);
    if (failure.kind !== "unreachable") this.#noteWord(nodeId, "silent" in failure && failure.silent === true);
    switch (failure.kind) {
      case "unreachable":
      case "cut":
        return;
      case "refused-by-us":
        this.#refusals.refuse(nodeId, failure.reason, failure.message);
        break;
      case "refused-by-peer":
        this.#refusals.refusedBy(nodeId, failure.reason, failure.message);
        break;
      default:
        assertNever(failure, "dial");
    }
    if (!PASSING.has(failure.reason)) this.#refused.set(nodeId, failure);
  }

  /** Whoever was refused a connection in between has not spoken either; one word is enough to be there for good. */
  #noteWord(nodeId: string, isSilent: boolean): void {
    if (!isSilent) this.#silentSinceMs.set(nodeId, Infinity);
    else if (!this.#silentSinceMs.has(nodeId)) this.#silentSinceMs.set(nodeId, performance.now());
  }
}

function notFounding(nodeId: string, { reason, message }: Refuse): TenureError {
  return new TenureError(
    OF_CERTIFICATES.has(reason) ? "CERTIFICATE_INVALID" : "CONFIG_INVALID",
    `peer ${nodeId} answers, but not as a node of a cluster that this one could join: ${message}. It may have a cluster, so no second one is founded next to it. Correct that, or take ${nodeId} out of "peers" if it is none of yours.`,
  );
}
