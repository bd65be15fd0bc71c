// A worker's office on Tenure's own servers: leads through the cluster, and writes to a store outside of it with the epoch of
// its term, which the store compares. Stale writes carry an old epoch by hand, past the gate.

import { setTimeout as sleep } from "node:timers/promises";
import { createElector, StaleEpochError, type Transition } from "../../src/entry/index.ts";
import { servers } from "../../src/entry/servers.ts";
import type { Term } from "../../src/ports/elector.ts";
import type { WorkerConfig } from "./messages.ts";
import type { Office, OfficeTerm } from "./office.ts";
import { ask, sendStale } from "./servers-resource.ts";

const RETRY_MS = 10;

/** `url` is the cluster's, with commas; `resourceUrl` the store's. */
export function serversOffice(config: WorkerConfig, onTransition: (transition: Transition) => void): Office {
  const { scope, url, name, timing, resourceUrl = "", key } = config;
  const knobs =
    timing === undefined
      ? {}
      : { ttlMs: timing.serverTimeoutMs, heartbeatMs: timing.heartbeatMs, marginMs: timing.marginMs };
  const backend = servers(url, { ...knobs, key, learnMembers: false });
  const elector = createElector({ scope, identity: name, backend, onTransition });
  return {
    lead: (work, signal) =>
      elector.lead(
        async (term) => {
          if (await claimed(term)) await work(termOf(term));
        },
        { signal },
      ),
    stale: (epoch) => sendStale(resourceUrl, epoch),
    newest: async () => (await ask(resourceUrl, { do: "epoch" })).epoch,
    close: () => elector.close(),
  };

  /** Before anything is read: from here on no older leader writes any more. False: the term is over. */
  async function claimed(term: Term): Promise<boolean> {
    while (!term.signal.aborted) {
      try {
        if ((await ask(resourceUrl, { do: "claim", epoch: term.epoch })).done) return true;
        throw new StaleEpochError(scope, term.epoch);
      } catch (error) {
        if (StaleEpochError.is(error)) throw error;
        await sleep(RETRY_MS);
      }
    }
    return false;
  }

  function termOf(term: Term): OfficeTerm {
    return {
      epoch: term.epoch,
      signal: term.signal,
      isOpen: () => elector.gate.isLeader,
      read: async () => (await ask(resourceUrl, { do: "lanes" })).lanes,
      write: async (increment, think) => {
        await think();
        const { done } = await ask(resourceUrl, { do: "write", epoch: term.epoch, increment });
        if (!done) throw new StaleEpochError(scope, term.epoch);
      },
      outcomeOf: (error) => (StaleEpochError.is(error) ? "refused" : "unknown"),
      busy: async () => undefined,
    };
  }
}
