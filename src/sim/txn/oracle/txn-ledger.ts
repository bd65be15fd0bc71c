// All islands together: what clients asked for and were answered, and what each island has committed.
//
// - One body of an id is ever committed. What home has committed was prepared by all others before; what another island has decided, home decided
//   before, and alike. Nothing is decided twice.
// - Who was told "committed": so it is at home; "applied": so it is there. Who was told "rolled back": home's record says so, or the id can't come
//   to anything any more. What was refused for good is never committed after that.
// - Home is notified that an island is done only when it is.
// - Each job of a committed transaction is in the jobs' log once; none of another is.
// - A scope that is moved is held at one island at a time.

import type { TenureError } from "../../../core/kit/errors.ts";
import type { BackendHash, TxnAnswer, TxnHeader, TxnRequest, TxnResult } from "../../../core/txn/model.ts";
import type { TxnBody, TxnOutcome } from "../../../ports/transactions.ts";
import { type TxnProbe, type TxnProbeCounts, reached } from "../probes.ts";
import { type Asked, askedOf, type BodyKind, canonical } from "./bodies.ts";
import { IslandLedger, type Together, type TxnDecided } from "./island-ledger.ts";

type Outcome = "committed" | "rolled-back";

/** By a clock, its id is too old or is made in the future. */
const AGE: ReadonlySet<string | undefined> = new Set(["txn_expired", "invalid_txn_id"]);

/** Of one id, over all islands. */
interface Known {
  readonly id: string;
  readonly bodies: Asked[];
  /** By the digest that is in records. */
  readonly byDigest: Map<string, Asked>;
  readonly decided: Map<BackendHash, Decided>;
  readonly prepared: Map<BackendHash, string>;
  /** Bodies that home has committed. Two of one id have no island in common, or the second one had met the first. */
  readonly committed: Asked[];
  readonly told: Set<string>;
  /** Bodies of which it was said that nothing comes of them. */
  readonly refused: Map<number, string>;
  answers: number;
}

interface Decided {
  readonly outcome: Outcome;
  readonly digest: string;
  readonly home: BackendHash;
  readonly results: readonly TxnResult[];
}

interface OutboxJob {
  readonly island: BackendHash;
  readonly id: string;
  readonly place: number;
  readonly operation: number;
}

export interface SubmittedJob {
  /** Of its event. */
  readonly sequence: number;
  readonly jobId: string;
  readonly isOfTxn: boolean;
}

export interface LedgerOptions {
  readonly probes: TxnProbeCounts;
  readonly nowMs: () => number;
  readonly wrong: (node: string, what: string) => void;
  /** Home can't commit it any more, though it has no record of it. */
  readonly isPastAt: (home: BackendHash, id: string) => boolean;
}

export class TxnLedger implements Together {
  readonly probes: TxnProbeCounts;
  readonly islands = new Map<BackendHash, IslandLedger>();
  readonly #options: LedgerOptions;
  readonly #bodies: Asked[] = [];
  readonly #known = new Map<string, Known>();
  readonly #outbox = new Map<string, OutboxJob>();
  readonly #submitted = new Map<string, BackendHash>();
  readonly #lastDelivered = new Map<BackendHash, OutboxJob>();
  readonly #jobHeads = new Map<BackendHash, number>();
  /** Those of the clients alone. */
  readonly counts = { committed: 0, rolledBack: 0, unknown: 0, refused: 0 };

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.probes = options.probes;
  }

  get nowMs(): number {
    return this.#options.nowMs();
  }

  get committed(): number {
    return [...this.#known.values()].filter(({ committed }) => committed.length > 0).length;
  }

  island(hash: BackendHash): IslandLedger {
    const known = this.islands.get(hash) ?? new IslandLedger(hash, this);
    this.islands.set(hash, known);
    return known;
  }

  wrong(node: string, what: string): void {
    this.#options.wrong(node, what);
  }

  // ---- what clients ask, and are told --------------------------------------------------------------

  /** The number that the next body's values name. */
  get nextBody(): number {
    return this.#bodies.length;
  }

  ask(kind: BodyKind, body: TxnBody): Asked {
    const asked = askedOf(this.#bodies.length, kind, body);
    this.#bodies.push(asked);
    this.#of(asked.id).bodies.push(asked);
    return asked;
  }

  asked(number: number): Asked | undefined {
    return this.#bodies[number];
  }

  known(id: string, digest: string): Asked | undefined {
    const known = this.#known.get(id);
    const [only] = known?.bodies ?? [];
    return known?.byDigest.get(digest) ?? (known?.bodies.length === 1 ? only : undefined);
  }

  /** Whether one of these bodies is committed, as far as the records say. */
  isCommitted({ id, number }: Asked): boolean {
    return this.#known.get(id)?.committed.some((one) => one.number === number) ?? false;
  }

  /** As the answer leaves the node. `isStaged`: only the outcome is said. */
  told(
    node: string,
    asked: Asked,
    { state, participants, home, reason }: Pick<TxnOutcome, "state" | "participants" | "home" | "reason">,
  ): void {
    const known = this.#of(asked.id);
    if (++known.answers > 1) this.#reached("answered-again");
    known.told.add(node);
    if (known.told.size > 1) this.#reached("answered-by-two-coordinators");
    const atHome = this.#atHome(asked);
    if (home !== asked.home) this.wrong(node, `said that ${home} is home of ${asked.id}, which is ${asked.home}`);
    if (state === "rolled-back") {
      if (reason?.code === "txn_locked") this.#reached("rolled-back-for-a-lock");
      if (reason?.code === "VERSION_CONFLICT") this.#reached("rolled-back-for-a-version");
      if (reason?.code === "STALE_EPOCH") this.#reached("rolled-back-for-an-epoch");
      if (AGE.has(reason?.code)) this.#reached("rolled-back-for-its-age");
      return this.#toldRolledBack(node, asked, known);
    }
    if (atHome !== "committed" || !this.isCommitted(asked))
      return this.wrong(node, `said that ${asked.id} is committed, and home has ${atHome ?? "nothing"} of it`);
    if (
      participants
        .map(({ backendHash }) => backendHash)
        .toSorted()
        .join() !== [...asked.participants.keys()].toSorted().join()
    )
      this.wrong(node, `answered for other participants of ${asked.id} than were named`);
    for (const { backendHash, state: one, results } of participants) {
      const decided = known.decided.get(backendHash);
      const is = decided?.outcome;
      // One that has forgotten what it did says that it was done, and no more.
      const isSame = results.length === 0 || canonical(results) === canonical(decided?.results ?? []);
      if (one === "applied" && !isSame)
        this.wrong(node, `said other results of ${asked.id} at ${backendHash} than it has`);
      if (one === "pending") this.#reached("told-pending");
      if (one === "applied" && is !== "committed")
        this.wrong(node, `said that ${asked.id} is applied at ${backendHash}, where it is ${is ?? "not decided"}`);
      if (one === "rolled-back")
        this.wrong(node, `said that ${asked.id} is rolled back at ${backendHash}, and it is committed`);
    }
    this.#reached("committed");
    this.#reached(asked.participants.size > 1 ? "committed-over-islands" : "committed-in-one-island");
    if (asked.kind === "move") this.#reached("moved-a-scope");
    if (asked.kind === "staged") this.#reached("staged-and-committed");
  }

  /** Of staged operations. */
  toldDecided(node: string, asked: Asked, state: "pending" | "commit" | "rollback"): void {
    const known = this.#of(asked.id);
    const atHome = this.#atHome(asked);
    if (state === "rollback") return this.#toldRolledBack(node, asked, known);
    if (state === "pending") return;
    if (atHome !== "committed")
      this.wrong(node, `said that ${asked.id} is committed, and home has ${atHome ?? "nothing"} of it`);
    this.#reached("committed");
    this.#reached("staged-and-committed");
  }

  #toldRolledBack(node: string, asked: Asked, known: Known): void {
    const atHome = this.#atHome(asked);
    this.#reached("rolled-back");
    known.refused.set(asked.number, "rolled back");
    if (this.isCommitted(asked)) this.wrong(node, `said that ${asked.id} is rolled back, and it is committed`);
    else if (atHome !== "rolled-back" && (atHome === "committed" || !this.#options.isPastAt(asked.home, asked.id)))
      this.wrong(node, `said that ${asked.id} is rolled back, and home has ${atHome ?? "nothing"} of it`);
  }

  /** A refusal as it leaves the node. */
  refused(node: string, asked: Asked, { code, message }: TenureError): void {
    const known = this.#of(asked.id);
    switch (code) {
      case "OUTCOME_UNKNOWN":
        return this.#reached("told-unknown");
      case "txn_fanout_failed":
        this.#reached("rolled-back-by-silence");
        return this.#toldRolledBack(node, asked, known);
      case "txn_conflict":
        this.#reached("conflict-told");
        return this.#neverAfter(node, asked, known, code);
      case "txn_expired":
        return this.#forgotten(node, asked, known, code);
      case "tc_unavailable":
      case "tc_not_leader":
      case "tc_rm_unavailable":
      case "tc_cluster_unavailable":
      case "OVERLOADED":
      case "ERR_NO_LEADER":
      case "txn_pending":
        return;
      default:
        this.wrong(node, `answered ${asked.id} with ${code}: ${message}`);
    }
  }

  /** It may have been committed long ago. A rollback that home has recorded is an outcome, and not this. */
  #forgotten(node: string, asked: Asked, known: Known, code: string): void {
    known.refused.set(asked.number, code);
    if (!this.#options.isPastAt(asked.home, asked.id))
      this.wrong(node, `said that ${asked.id} is forgotten at its home, which would still decide it`);
  }

  /** Said to be definite: of this body nothing comes. */
  #neverAfter(node: string, asked: Asked, known: Known, code: string): void {
    known.refused.set(asked.number, code);
    if (this.isCommitted(asked)) this.wrong(node, `refused ${asked.id} for good (${code}), and it is committed`);
  }

  // ---- what islands have committed -----------------------------------------------------------------

  learned(island: BackendHash, { id, digest }: TxnHeader, body: Asked): void {
    const known = this.#of(id);
    const before = known.byDigest.get(digest);
    if (before !== undefined && before.number !== body.number)
      this.wrong(island, `has bodies ${before.number} and ${body.number} of ${id} under one digest`);
    known.byDigest.set(digest, body);
  }

  prepared(island: BackendHash, { id, digest }: TxnHeader): void {
    this.#of(id).prepared.set(island, digest);
  }

  decided(node: string, island: BackendHash, { header, outcome, results }: TxnDecided): void {
    const { id, home, digest, participants } = header;
    const known = this.#of(id);
    const before = known.decided.get(island);
    if (before !== undefined) this.wrong(node, `decided ${id} again: ${before.outcome}, then ${outcome}`);
    known.decided.set(island, { outcome, digest, home, results });
    if (island !== home) return this.#followed(node, header, known, outcome);
    const elsewhere = [...known.decided].find(
      ([, other]) => other.digest === digest && other.home === home && other.outcome !== outcome,
    );
    if (elsewhere !== undefined)
      this.wrong(node, `wrote as home that ${id} is ${outcome}, and ${elsewhere[0]} has ${elsewhere[1].outcome}`);
    if (outcome === "rolled-back") return;
    const missing = participants.find((one) => one !== home && known.prepared.get(one) !== digest);
    if (missing !== undefined) this.wrong(node, `committed ${id} as home, and ${missing} has not prepared it`);
    const body = known.byDigest.get(digest) ?? this.known(id, digest);
    if (body === undefined) return this.wrong(node, `committed ${id} as home, and nobody knows what it is`);
    const met = known.committed.find((other) => islandsOf(other).some((one) => islandsOf(body).includes(one)));
    if (met !== undefined) this.wrong(node, `committed body ${body.number} of ${id} as home, after body ${met.number}`);
    known.committed.push(body);
    const refused = known.refused.get(body.number);
    if (refused !== undefined)
      this.wrong(node, `committed ${id} as home, of which it was said that nothing comes (${refused})`);
  }

  /** An island that is not home. */
  #followed(node: string, { id, home, digest }: TxnHeader, known: Known, outcome: Outcome): void {
    if (outcome === "rolled-back") this.#reached("presumed-aborted");
    const atHome = known.decided.get(home);
    const isHomes = atHome?.home === home && atHome.digest === digest;
    // Home has forgotten it, or knows another body under this id: it never commits this one.
    const isNeverAtHome = this.#hasOther(home, { id, home, digest }) || (!isHomes && this.#options.isPastAt(home, id));
    if (outcome === "rolled-back" && isNeverAtHome) return;
    if (!isHomes || atHome.outcome !== outcome)
      this.wrong(node, `wrote that ${id} is ${outcome}, and home has ${atHome?.outcome ?? "nothing"} of it`);
  }

  /** As an answer to another island leaves: what it says is written. */
  answered(node: string, island: BackendHash, request: TxnRequest, answer: TxnAnswer): void {
    if (answer.kind === "refused") {
      if (answer.code === "tc_term_stale") this.#reached("stale-term-refused");
      if (answer.code === "txn_expired") this.#reached("forgotten-and-refused");
      return;
    }
    if (answer.kind === "recovered") {
      if (answer.open.length > 0) this.#reached("rolled-forward");
      return;
    }
    if (answer.kind !== "txn" || !("header" in request)) return;
    const { id, home, digest } = request.header;
    const decided = this.#known.get(id)?.decided.get(island);
    const { phase } = answer;
    if (phase === "prepared" && this.#known.get(id)?.prepared.get(island) !== digest)
      this.wrong(node, `said that ${id} is prepared, and it is not`);
    if (phase !== "committed" && phase !== "rolled-back") return;
    const isOther = this.#hasOther(island, request.header);
    const isPast = phase === "rolled-back" && island === home && (isOther || this.#options.isPastAt(home, id));
    if (decided?.outcome !== phase && !isPast)
      this.wrong(node, `said that ${id} is ${phase}, and it is ${decided?.outcome ?? "undecided"}`);
    if (phase === "committed" && decided?.digest !== digest)
      this.wrong(node, `said of another body of ${id} that it is committed`);
  }

  settled(node: string, home: BackendHash, { id, participants }: TxnHeader, by: BackendHash): void {
    const decided = this.#known.get(id)?.decided;
    const atHome = decided?.get(home)?.outcome;
    if (!participants.includes(by) || decided?.get(by)?.outcome !== atHome)
      return this.wrong(
        node,
        `wrote that ${by} has done ${id}, which is ${decided?.get(by)?.outcome ?? "undecided"} there`,
      );
    const missing = [...this.#outbox].find(
      ([job, one]) => one.island === by && one.id === id && this.#submitted.get(job) === undefined,
    );
    if (missing !== undefined)
      this.wrong(node, `wrote that ${by} has done ${id}, and its job ${missing[0]} is not submitted`);
  }

  // ---- jobs ----------------------------------------------------------------------------------------

  outbox(
    island: BackendHash,
    { id }: TxnHeader,
    jobs: readonly { readonly jobId: string; readonly operation: number }[],
    place: number,
  ): void {
    for (const { jobId, operation } of jobs) {
      if (this.#outbox.has(jobId)) this.wrong(island, `drew the id ${jobId} twice`);
      this.#outbox.set(jobId, { island, id, place, operation });
    }
  }

  isDelivered(_island: BackendHash, jobId: string): boolean {
    return this.#submitted.has(jobId);
  }

  /** A job's event, when it is first applied anywhere in the island. */
  job(node: string, island: BackendHash, { sequence, jobId, isOfTxn }: SubmittedJob): void {
    if (sequence <= (this.#jobHeads.get(island) ?? 0)) return;
    this.#jobHeads.set(island, sequence);
    const of = this.#outbox.get(jobId);
    if (of === undefined) {
      if (isOfTxn) this.wrong(node, `submitted job ${jobId} of a transaction that is not committed`);
      return;
    }
    if (of.island !== island) this.wrong(node, `submitted job ${jobId} of ${of.island}`);
    if (this.#submitted.has(jobId)) this.wrong(node, `submitted job ${jobId} twice`);
    this.#submitted.set(jobId, island);
    this.#reached("job-delivered");
    const last = this.#lastDelivered.get(island);
    if (last !== undefined && (of.place < last.place || (of.place === last.place && of.operation <= last.operation)))
      this.wrong(node, `submitted job ${jobId} after one that was committed later`);
    this.#lastDelivered.set(island, of);
  }

  // ---- scopes that are moved -----------------------------------------------------------------------

  held(node: string, island: BackendHash): void {
    for (const scope of this.island(island).holds.keys()) {
      if (!scope.startsWith("move/")) continue;
      const others = [...this.islands.values()].filter(({ hash, holds }) => hash !== island && holds.has(scope));
      if (others.length > 0) this.wrong(node, `holds ${scope}, which is held at ${others[0]!.hash} too`);
    }
  }

  // ---- at rest -------------------------------------------------------------------------------------

  /** Null: what was begun has ended everywhere, alike. */
  problem(): string | null {
    for (const { id, committed, decided, prepared } of this.#known.values()) {
      const lone = [...decided].find(([, { outcome }]) => outcome === "committed" && committed.length === 0);
      if (lone !== undefined) return `${id} is committed at ${lone[0]}, and home has not committed it`;
      for (const island of committed.flatMap(({ participants }) => [...participants.keys()])) {
        const is = decided.get(island)?.outcome;
        if (is !== "committed")
          return `${id} is committed, and ${is ?? (prepared.has(island) ? "prepared" : "unknown")} at ${island}`;
      }
    }
    const lost = [...this.#outbox].find(([jobId]) => !this.#submitted.has(jobId));
    return lost === undefined ? null : `job ${lost[0]} of ${lost[1].id} was never submitted`;
  }

  /** By what is committed: all outcomes, to be compared with what they are later. */
  outcomes(): Map<string, Outcome> {
    const all = [...this.#known.values()].flatMap(({ id, decided }) =>
      [...decided].map(([island, { outcome }]) => [`${id} at ${island}`, outcome] as const),
    );
    return new Map(all);
  }

  /** What was decided by then is as it was; what was not is not committed. */
  changedSince(before: ReadonlyMap<string, Outcome>): string | null {
    for (const [key, outcome] of this.outcomes()) {
      const was = before.get(key);
      if (was !== undefined && was !== outcome) return `${key} is ${outcome}, and was ${was}`;
    }
    return null;
  }

  /** What unknown answers turned out to be. */
  fates(unknown: readonly Asked[]): void {
    for (const asked of unknown) this.#reached(this.isCommitted(asked) ? "unknown-was-committed" : "unknown-was-not");
  }

  /** This island has another body under this id, for good: it was decided, or prepared, which it never forgets before. */
  #hasOther(island: BackendHash, { id, home, digest }: Pick<TxnHeader, "id" | "home" | "digest">): boolean {
    const known = this.#of(id);
    const decided = known.decided.get(island);
    if (decided !== undefined) return decided.digest !== digest || decided.home !== home;
    const prepared = known.prepared.get(island);
    return prepared !== undefined && prepared !== digest;
  }

  /** What home has of this body; null: nothing. */
  #atHome({ id, home, number }: Asked): Outcome | null {
    const known = this.#of(id);
    const decided = known.decided.get(home);
    if (decided === undefined) return null;
    const body = known.byDigest.get(decided.digest);
    if (body !== undefined && body.number !== number) return "rolled-back";
    return decided.outcome;
  }

  #of(id: string): Known {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const fresh: Known = {
      id,
      bodies: [],
      byDigest: new Map(),
      decided: new Map(),
      prepared: new Map(),
      committed: [],
      told: new Set(),
      refused: new Map(),
      answers: 0,
    };
    this.#known.set(id, fresh);
    return fresh;
  }

  #reached(probe: TxnProbe): void {
    reached(this.probes, probe);
  }
}

function islandsOf({ home, participants }: Asked): readonly BackendHash[] {
  return [home, ...participants.keys()];
}
