// The judge of `chaos txn`: what clients were told about each transaction, next to where it is found applied once nothing is under way any more.
//
//   started ──▶ told (commit, rollback, unknown; unknown may become the others when it is asked again) ──▶ audited, and judged for ever
//
// | told | at the audit it must be |
// |---|---|
// | commit | applied at all of its places |
// | rollback | applied nowhere |
// | unknown | applied at all, or nowhere |

export type TxnTold = "commit" | "rollback" | "unknown";

/** What an audit has found: see TxnBooks. */
export interface TxnFound {
  /** By the id of a transaction: places at which it is applied. */
  readonly applied: ReadonlyMap<string, ReadonlySet<string>>;
  /** What can't be, whatever was told: each is counted as half applied. */
  readonly broken: readonly string[];
}

interface Asked {
  readonly places: ReadonlySet<string>;
  told: TxnTold | null;
  /** As it was told, for whoever reads a finding. */
  readonly words: string[];
}

export class TxnJudge {
  readonly transactions = { started: 0, commit: 0, rollback: 0, unknown: 0 };
  halfApplied = 0;
  ackedCommitMissing = 0;
  ackedRollbackApplied = 0;
  /** The same transaction was told as committed and as rolled back. */
  contradictions = 0;
  /** Since the last audit. */
  #asked = new Map<string, Asked>();
  #contradicted: string[] = [];

  start(id: string, places: readonly string[]): void {
    if (this.#asked.has(id)) throw new Error(`${id} was started before`);
    this.transactions.started++;
    this.#asked.set(id, { places: new Set(places), told: null, words: [] });
  }

  /** As often as a client is told; `words`: what it was told in. */
  tell(id: string, told: TxnTold, words = ""): void {
    const asked = this.#asked.get(id);
    if (asked === undefined) throw new Error(`${id} was not started, or is judged already`);
    asked.words.push(words);
    if (told === "unknown") asked.told ??= told;
    else if (asked.told === null || asked.told === "unknown") asked.told = told;
    else if (asked.told !== told)
      this.#contradicted.push(`${id} was told as ${asked.told} and as ${told}: ${asked.words.join("; ")}`);
  }

  /** Once nothing is under way. Returns what is wrong. */
  audit({ applied, broken }: TxnFound): readonly string[] {
    const wrong = [...this.#contradicted, ...broken];
    this.contradictions += this.#contradicted.length;
    this.halfApplied += broken.length;
    for (const [id, asked] of this.#asked) {
      this.transactions[asked.told ?? "unknown"]++;
      const why = this.#wrong(asked, applied.get(id) ?? new Set());
      if (why !== null) wrong.push(`${id}, told as ${asked.told ?? "nothing"} (${asked.words.join("; ")}): ${why}`);
    }
    for (const id of applied.keys()) {
      if (this.#asked.has(id)) continue;
      this.halfApplied++;
      wrong.push(`${id} is applied, and was not asked for since the last audit`);
    }
    this.#asked = new Map();
    this.#contradicted = [];
    return wrong;
  }

  #wrong({ places, told }: Asked, applied: ReadonlySet<string>): string | null {
    const isWhole = applied.size === places.size && [...applied].every((place) => places.has(place));
    if (applied.size > 0 && told === "rollback") this.ackedRollbackApplied++;
    if (!isWhole && told === "commit") this.ackedCommitMissing++;
    if (applied.size > 0 && !isWhole) {
      this.halfApplied++;
      return `applied at ${[...applied].join(", ")} of ${[...places].join(", ")}`;
    }
    if (applied.size > 0 && told === "rollback") return "applied";
    return applied.size === 0 && told === "commit" ? "applied nowhere" : null;
  }
}
