// The fence in etcd: a comparison with the leader key's create_revision, evaluated by etcd in the same atomic step as
// the writes. The key is deleted with its lease and by whoever lets go, and a new one has a higher create_revision, so
// an epoch that is over never compares equal again.

import { StaleEpochError } from "../../core/kit/errors.ts";
import type { Hold } from "../../ports/backends/backend.ts";
import { type Fields, fieldsOf, txnOf } from "./answers.ts";
import { toBase64 } from "./keys.ts";
import type { EtcdSession } from "./session.ts";

/** What etcd adds to a term. */
export interface EtcdTerm {
  /**
   * The guard for a transaction of one's own, as the JSON API writes it; it belongs into `compare`. Without a look at
   * the gate: where this epoch is over, etcd says so.
   */
  ifLeader(): EtcdGuard;
  /**
   * Runs a transaction of the JSON API (keys and values in base64) only while this epoch is in force, else
   * StaleEpochError, and nothing was written. `compare` and `failure` are the caller's own and mean what they mean in
   * etcd. It is sent once: OUTCOME_UNKNOWN where no answer came, and BACKEND_UNAVAILABLE only where it was never sent.
   */
  txn(txn: EtcdTxn): Promise<EtcdTxnResult>;
}

export interface EtcdGuard {
  readonly key: string;
  readonly target: "CREATE";
  readonly result: "EQUAL";
  readonly create_revision: string;
}

export interface EtcdTxn {
  readonly compare?: readonly object[] | undefined;
  readonly success?: readonly object[] | undefined;
  readonly failure?: readonly object[] | undefined;
}

export interface EtcdTxnResult {
  /** Whether `compare` held. */
  readonly succeeded: boolean;
  readonly revision: number;
  /** As the JSON API writes them. */
  readonly responses: readonly Readonly<Record<string, unknown>>[];
}

export function guardOf(leaderKey: string, epoch: number): EtcdGuard {
  return { key: toBase64(leaderKey), target: "CREATE", result: "EQUAL", create_revision: String(epoch) };
}

export function etcdTerm(session: EtcdSession, leaderKey: string, hold: Hold, signal: AbortSignal): EtcdTerm {
  const { scope, epoch } = hold;
  return {
    ifLeader: () => guardOf(leaderKey, epoch),
    txn: async (txn) => {
      hold.check();
      // The caller's transaction inside of ours: its `failure` is not mistaken for a refused epoch.
      const answer = await session.write(
        { compare: [guardOf(leaderKey, epoch)], success: [{ request_txn: txn }] },
        signal,
      );
      if (!answer.succeeded) {
        hold.lost("superseded");
        throw new StaleEpochError(scope, epoch);
      }
      const inner = fieldsOf(answer.responses[0])["response_txn"];
      const { succeeded, responses } = txnOf({ header: headerFields(answer), ...fieldsOf(inner) });
      return { succeeded, revision: answer.revision, responses };
    },
  };
}

function headerFields({ revision, raftTerm }: { revision: number; raftTerm: number }): Fields {
  return { revision, raft_term: raftTerm };
}
