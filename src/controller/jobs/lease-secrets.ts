// What an agent shows to speak for a lease: the id of the lease and the session of its process. Both are secrets of its own:
// whoever has them may end its job. Events are shown to every viewer, and their bytes are for ever; so below this door there
// are only hashes of the two, in the log, in the book and in every answer but the one that gives the lease.
//
// A lease's id is a random UUID that the leader makes, so its hash can't be guessed backwards, whatever a session is.
// Nobody needs the id itself again: whoever renews or reports sends it, and a lease whose answer got lost is given to nobody
// again: it is taken back, or ends by its time, and the job's next lease has another id.

import type { Digest } from "../../ports/digest.ts";
import type { LeaseAnswer, LeaseCall, LeaseRef, ResultCall } from "../../ports/jobs.ts";

/** 128 bits: nobody finds another text for one of them, and an event carries up to two. */
const HASH_DIGITS = 32;

export class LeaseSecrets {
  readonly #digest: Pick<Digest, "sha256Hex">;

  constructor(digest: Pick<Digest, "sha256Hex">) {
    this.#digest = digest;
  }

  leaseHash(leaseId: string): string {
    return this.#hash(`tenure:lease:v1\n${leaseId}`);
  }

  sessionHash(session: string): string {
    return this.#hash(`tenure:session:v1\n${session}`);
  }

  /** As the leader sees it. */
  hidden(call: LeaseCall): LeaseCall {
    const { agent, renew, progress, logs } = call;
    return {
      ...call,
      agent: { ...agent, session: this.sessionHash(agent.session) },
      renew: renew.map((one) => this.#ref(one)),
      progress: progress.map((one) => this.#ref(one)),
      logs: logs.map((one) => this.#ref(one)),
    };
  }

  hiddenResults(results: readonly ResultCall[]): readonly ResultCall[] {
    return results.map((one) => this.#ref(one));
  }

  /** What the agent is told about the leases that it named, by the names that it knows. */
  shown(answer: LeaseAnswer, { renew }: LeaseCall): LeaseAnswer {
    const renewed = answer.renewed.map((one, at) => ({ ...one, leaseId: (renew[at] as LeaseRef).leaseId }));
    return { ...answer, renewed };
  }

  #ref<T extends LeaseRef>(one: T): T {
    return { ...one, leaseId: this.leaseHash(one.leaseId) };
  }

  #hash(text: string): string {
    return this.#digest.sha256Hex(text).slice(0, HASH_DIGITS);
  }
}
