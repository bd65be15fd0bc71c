// The last elections of this node, newest first, for whoever has to find out at night what happened.
//
// A node that is cut off asks for pre-votes several times a second, for as long as it is cut off. So
// - failed pre-votes in a row are one record: the answers and the result of the last one, the start of the first one, and
//   how many there were. A row ends where an election follows or a leader is heard.
// - of all records at most PRE_VOTES_KEPT_MAX are such rows: a flapping link can't push real elections out.
// A pre-vote that was won is not kept: the vote that follows it says everything.
// Times of the records kept are on the wall clock: the step's clock means nothing to people.

import { ELECTION_HISTORY_MAX } from "../kit/limits.ts";
import type { ElectionRecord } from "../raft/types.ts";
import { PRE_VOTES_KEPT_MAX } from "./limits.ts";
import type { KeptElection, Moment } from "./outputs.ts";

export class ElectionHistory {
  readonly #records: KeptElection[] = [];
  #rowIsOpen = false;

  /** The record as it is kept now; null for one that is not. */
  add(at: Moment, told: ElectionRecord): KeptElection | null {
    if (told.stage === "pre-vote" && told.result === "won") return null;
    const record = { ...told, startedAtMs: at.wallMs - (at.nowMs - told.startedAtMs), repeated: 1 };
    if (record.stage === "vote") {
      this.#rowIsOpen = false;
      return this.#put(record);
    }
    const row = this.#records[0];
    if (!this.#rowIsOpen || row === undefined) {
      this.#rowIsOpen = true;
      return this.#put(record);
    }
    const { startedAtMs } = row;
    const durationMs = Math.max(0, record.startedAtMs + record.durationMs - startedAtMs);
    return (this.#records[0] = { ...record, startedAtMs, durationMs, repeated: row.repeated + 1 });
  }

  leaderHeard(): void {
    this.#rowIsOpen = false;
  }

  /** Newest first. */
  get records(): readonly KeptElection[] {
    return this.#records;
  }

  #put(record: KeptElection): KeptElection {
    this.#records.unshift(record);
    const preVotes = this.#records.filter(({ stage }) => stage === "pre-vote");
    if (preVotes.length > PRE_VOTES_KEPT_MAX) this.#records.splice(this.#records.indexOf(preVotes.at(-1)!), 1);
    if (this.#records.length > ELECTION_HISTORY_MAX) this.#records.pop();
    return record;
  }
}
