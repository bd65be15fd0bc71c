// A worker's office on Tenure's etcd backend: every write is a transaction under the term's guard; stale writes carry the
// guard of an old epoch by hand, past the gate and past the library.

import { createElector, NotLeaderError, StaleEpochError, type Transition } from "../../src/entry/index.ts";
import { etcd, type EtcdTerm } from "../../src/entry/etcd.ts";
import type { Term } from "../../src/ports/elector.ts";
import { ask, base64, getKey, putsOf, readLanes, stalePut } from "./etcd-keys.ts";
import type { StaleOutcome, WorkerConfig } from "./messages.ts";
import type { Office, OfficeTerm } from "./office.ts";

export function etcdOffice(config: WorkerConfig, onTransition: (transition: Transition) => void): Office {
  const { scope, url, name, timing } = config;
  const knobs =
    timing === undefined
      ? {}
      : { ttlSeconds: timing.serverTimeoutMs / 1_000, heartbeatMs: timing.heartbeatMs, marginMs: timing.marginMs };
  const elector = createElector({
    scope,
    identity: name,
    backend: etcd({ endpoints: url, ...knobs }),
    onTransition,
  });
  const stale = new StaleEtcdSender(url, scope, name);
  return {
    lead: (work, signal) => elector.lead((term) => work(termOf(term)), { signal }),
    stale: (epoch) => stale.attempt(epoch),
    newest: () => stale.newest(),
    close: () => elector.close(),
  };

  function termOf(term: Term & EtcdTerm): OfficeTerm {
    return {
      epoch: term.epoch,
      signal: term.signal,
      isOpen: () => elector.gate.isLeader,
      read: () => readLanes(url, config.lanes),
      write: async (increment, think) => {
        await think();
        const { succeeded } = await term.txn({ success: putsOf(increment, term.epoch) });
        if (!succeeded) throw new Error("a transaction without conditions did not succeed");
      },
      outcomeOf: (error) => (NotLeaderError.is(error) || StaleEpochError.is(error) ? "refused" : "unknown"),
      busy: async () => undefined,
    };
  }
}

/** The key that holds a scope; the library's docs name it. */
export function leaderKey(scope: string): string {
  return `tenure/${encodeURIComponent(scope)}/leader`;
}

/** Guarded transactions with whatever epoch it is told, by hand. */
export class StaleEtcdSender {
  readonly #endpoint: string;
  readonly #scope: string;
  readonly #name: string;
  #seq = 0;

  constructor(endpoint: string, scope: string, name: string) {
    this.#endpoint = endpoint;
    this.#scope = scope;
    this.#name = name;
  }

  async attempt(epoch: number): Promise<StaleOutcome> {
    const key = base64(leaderKey(this.#scope));
    const guard = { key, target: "CREATE", result: "EQUAL", create_revision: String(epoch) };
    const txn = { compare: [guard], success: [stalePut(this.#name, ++this.#seq, epoch)] };
    try {
      const { succeeded } = await ask<{ succeeded?: boolean }>(this.#endpoint, "kv/txn", txn);
      return succeeded === true ? "accepted" : "refused";
    } catch {
      return "unknown";
    }
  }

  /** 0 while nobody leads. */
  async newest(): Promise<number> {
    return Number((await getKey(this.#endpoint, leaderKey(this.#scope)))?.create_revision ?? 0);
  }
}
