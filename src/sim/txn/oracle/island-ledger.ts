// One island by the committed records of its state log alone: values, scopes, locks, and what became of each transaction. Nothing here is shared with
// the code that decides; each record is held against what may follow.
//
// - All nodes apply the same records, and have the same state at one position.
// - A transaction is prepared once, decided once, and never comes back; what it locked nobody else changes meanwhile.
// - A record's effects are the operations that were prepared, or of the body at home; versions and epochs that it names were so.
// - The fence never falls, and nothing of a lower term than it is written.

import { assertNever } from "../../../core/kit/assert.ts";
import { wholeOf } from "../../../core/kit/pieces.ts";
import { VALUES_MAX } from "../../../core/kit/limits.ts";
import { GENERATION_TERMS } from "../../../core/lease/limits.ts";
import { decodeRecord, type StateChange, type StateFold } from "../../../core/state/index.ts";
import type { TxnEvent } from "../../../core/txn/index.ts";
import type { BackendHash, TcFence, TxnHeader, TxnOperation } from "../../../core/txn/model.ts";
import type { LogRecord } from "../../../ports/log.ts";
import { type TxnProbe, type TxnProbeCounts, reached } from "../probes.ts";
import { type Asked, bodyOf, canonical, textOf } from "./bodies.ts";

/** So many records apart whole states are compared. */
const STATES_EVERY = 8;

type Phase = "staged" | "prepared" | "committed" | "rolled-back" | "dropped";

/** A transaction here; never forgotten. */
export interface LocalTxn {
  readonly header: TxnHeader;
  readonly phase: Phase;
  readonly operations: readonly TxnOperation[];
  readonly settledBy: Set<BackendHash>;
  /** Of an island that is not home: home knows that it is done here. */
  readonly isKnown: boolean;
  readonly isDelivered: boolean;
  /** When it was prepared, by the world's clock. */
  readonly atMs: number;
}

interface Hold {
  readonly epoch: number;
  readonly session: string;
}

export type TxnDecided = Extract<TxnEvent, { kind: "txn-decided" }>;

/** What is asked of all islands together. */
export interface Together {
  readonly nowMs: number;
  readonly probes: TxnProbeCounts;
  wrong(node: string, what: string): void;
  asked(number: number): Asked | undefined;
  /** By the digest that the records of an id name. */
  known(id: string, digest: string): Asked | undefined;
  /** The records of this digest are this body's. */
  learned(island: BackendHash, header: TxnHeader, body: Asked): void;
  prepared(island: BackendHash, header: TxnHeader): void;
  decided(node: string, island: BackendHash, event: TxnDecided): void;
  settled(node: string, home: BackendHash, header: TxnHeader, by: BackendHash): void;
  /** Scopes that are held here have changed. */
  held(node: string, island: BackendHash): void;
  /** Jobs that a committed transaction submits here. */
  outbox(
    island: BackendHash,
    header: TxnHeader,
    jobs: readonly { readonly jobId: string; readonly operation: number }[],
    place: number,
  ): void;
  isDelivered(island: BackendHash, jobId: string): boolean;
}

export class IslandLedger {
  readonly hash: BackendHash;
  readonly txns = new Map<string, LocalTxn>();
  readonly values = new Map<string, { readonly version: number; readonly data: Uint8Array }>();
  readonly holds = new Map<string, Hold>();
  /** By key: who holds it. */
  readonly locks = new Map<string, string>();
  fence: TcFence | null = null;
  /** As nodes have had it. */
  horizon: string | null = null;
  readonly #all: Together;
  readonly #records: Uint8Array[] = [];
  readonly #positions = new Map<string, number>();
  readonly #snapshots = new Map<number, Uint8Array>();
  readonly #jobs = new Map<string, readonly string[]>();
  /** Needed still, by what is committed. */
  readonly #open = new Set<string>();

  constructor(hash: BackendHash, all: Together) {
    this.hash = hash;
    this.#all = all;
  }

  /** The last committed record's position. */
  get head(): number {
    return this.#records.length;
  }

  positionOf(node: string): number {
    return this.#positions.get(node) ?? 0;
  }

  started(node: string): void {
    this.#positions.set(node, 0);
  }

  /** Before it is applied there. */
  committed(node: string, { position, data }: LogRecord): void {
    const before = this.positionOf(node);
    if (position !== before + 1) this.#wrong(node, `applied state record ${position} after ${before}`);
    this.#positions.set(node, position);
    const known = this.#records[position - 1];
    if (known !== undefined) {
      if (!isSame(known, data)) this.#wrong(node, `applied another state record ${position} than others`);
      return;
    }
    const record = decodeRecord(data);
    if (record.kind !== "changes") return this.#wrong(node, `can't read state record ${position}`);
    this.#records.push(data.slice());
    this.#take(node, record.changes, position);
  }

  /** After it was applied there. */
  folded(node: string, fold: StateFold): void {
    const position = this.positionOf(node);
    if (fold.counts.malformed + fold.counts.unfit > 0) this.#wrong(node, `ignored state record ${position}`);
    this.#forgets(node, fold);
    if (position === this.head) this.#remembers(node, fold);
    if (position % STATES_EVERY === 0) this.compare(node, fold);
  }

  restored(node: string, position: number, fold: StateFold): void {
    if (position > this.head) this.#wrong(node, `restored state record ${position}, which nobody has`);
    this.#positions.set(node, position);
    if (fold.txns.prepared > 0) this.#reached("state-restored-with-prepared");
    this.compare(node, fold);
  }

  /** The largest id that was forgotten here only grows. */
  #forgets(node: string, { txns: { horizon } }: StateFold): void {
    if (horizon === null || horizon === this.horizon) return;
    this.#reached("forgotten");
    if (this.horizon === null || horizon > this.horizon) this.horizon = horizon;
    else if (this.positionOf(node) === this.head)
      this.#wrong(node, `has the horizon ${horizon}, which was ${this.horizon}`);
  }

  /** At rest: nothing of a transaction is under way. Null: so it is. */
  unrest(): string | null {
    for (const id of this.#open) {
      const { phase, header } = this.txns.get(id)!;
      if (phase !== "committed") return `${id} is ${phase}`;
      const missing = this.#jobs.get(id)?.find((jobId) => !this.#all.isDelivered(this.hash, jobId));
      if (missing !== undefined) return `job ${missing} of ${id} is not submitted`;
      return `${id} is committed, and home ${header.home === this.hash ? "waits for others" : "does not know"}`;
    }
    const [lock] = this.locks;
    return lock === undefined ? null : `${lock[0]} is locked by ${lock[1]}`;
  }

  // ---- records -------------------------------------------------------------------------------------

  #take(node: string, changes: readonly StateChange[], position: number): void {
    const txns = changes.filter(isOfTxn);
    const effects = changes.filter((one) => !isOfTxn(one));
    let of: string | null = null;
    for (const event of txns) of = this.#txn(node, event, effects, position) ?? of;
    for (const effect of effects) this.#effect(node, effect, position, of);
  }

  /** The transaction whose effects stand in its record; null: it has none. */
  #txn(node: string, event: TxnEvent, effects: readonly StateChange[], position: number): string | null {
    switch (event.kind) {
      case "txn-staged":
        this.#staged(node, event);
        return null;
      case "txn-prepared":
        this.#prepared(node, event);
        return null;
      case "txn-decided":
        this.#decided(node, event, effects, position);
        return event.header.id;
      case "txn-settled":
        this.#settled(node, event.id, event.by);
        return null;
      case "txn-delivered": {
        const txn = this.txns.get(event.id);
        const missing = this.#jobs.get(event.id)?.find((jobId) => !this.#all.isDelivered(this.hash, jobId));
        if (txn?.phase !== "committed" || missing !== undefined)
          this.#wrong(
            node,
            `wrote that all jobs of ${event.id} are delivered, and ${missing ?? "it is not committed"} is not`,
          );
        if (txn !== undefined) this.#is({ ...txn, isDelivered: true });
        return null;
      }
      case "txn-fence":
        this.#raise(node, event.fence, `at ${position}`);
        this.#reached("fence-raised-by-recover");
        return null;
      case "txn-dropped": {
        const txn = this.txns.get(event.id);
        if (txn?.phase !== "staged") this.#wrong(node, `dropped ${event.id}, which is ${txn?.phase ?? "unknown"}`);
        if (txn !== undefined) this.#is({ ...txn, phase: "dropped" });
        this.#reached("staged-and-dropped");
        return null;
      }
      default:
        return assertNever(event, "event of a transaction");
    }
  }

  #staged(node: string, { header, operations }: Extract<TxnEvent, { kind: "txn-staged" }>): void {
    const before = this.txns.get(header.id);
    if (before !== undefined && before.phase !== "dropped")
      return this.#wrong(node, `staged ${header.id}, which is ${before.phase}`);
    this.#reached("staged");
    this.#is(this.#local(header, "staged", operations));
  }

  #prepared(node: string, { header, operations, fence }: Extract<TxnEvent, { kind: "txn-prepared" }>): void {
    const { id, home } = header;
    const before = this.txns.get(id);
    if (before !== undefined && before.phase !== "staged" && before.phase !== "dropped")
      this.#wrong(node, `prepared ${id}, which is ${before.phase} here`);
    if (home === this.hash) this.#wrong(node, `prepared ${id} at its home`);
    this.#raise(node, fence, `prepare of ${id}`);
    this.#learn(node, header, operations);
    this.#possible(node, operations, `prepared ${id}`);
    for (const key of keysOf(operations)) {
      const holder = this.locks.get(key);
      if (holder !== undefined) this.#wrong(node, `prepared ${id} with ${key}, which ${holder} has locked`);
      this.locks.set(key, id);
    }
    this.#is(this.#local(header, "prepared", operations));
    this.#all.prepared(this.hash, header);
  }

  #decided(node: string, event: TxnDecided, effects: readonly StateChange[], position: number): void {
    const { header, outcome, fence } = event;
    const { id, home } = header;
    const before = this.txns.get(id);
    const isHome = home === this.hash;
    const isOpen = before === undefined || before.phase === "staged" || before.phase === "dropped";
    if (isHome ? !isOpen : before?.phase !== "prepared")
      return this.#wrong(node, `wrote that ${id} is ${outcome}, which is ${before?.phase ?? "unknown"} here`);
    if (!isHome && before !== undefined && canonical(headOf(before.header)) !== canonical(headOf(header)))
      this.#wrong(node, `decided another ${id} than it had prepared`);
    if (fence !== null) this.#raise(node, fence, `decision of ${id}`);
    const operations = isHome ? this.#homeOperations(header, effects) : before!.operations;
    for (const key of keysOf(before?.phase === "prepared" ? before.operations : [])) this.locks.delete(key);
    if (outcome === "rolled-back" && effects.length > 0) this.#wrong(node, `rolled ${id} back, with effects`);
    if (outcome === "committed") {
      if (isHome) this.#commitAtHome(node, header, operations, effects);
      this.#effectsAre(node, id, operations, effects);
      this.#outbox(node, event, operations, position);
      this.#resultsAre(node, event, operations, position);
    }
    this.#is({ ...this.#local(header, outcome, operations), isDelivered: (this.#jobs.get(id) ?? []).length === 0 });
    this.#all.decided(node, this.hash, event);
  }

  /** At home what is done is in the record alone: it says whose it is by what it puts. */
  #homeOperations(header: TxnHeader, effects: readonly StateChange[]): readonly TxnOperation[] {
    const puts = effects.flatMap((one) =>
      one.kind === "value-put" ? [{ kind: "value-put", name: one.name, data: one.data, ifVersion: null } as const] : [],
    );
    const number = bodyOf(puts);
    const body = number === null ? this.#all.known(header.id, header.digest) : this.#all.asked(number);
    return body?.participants.get(this.hash) ?? [];
  }

  #commitAtHome(
    node: string,
    header: TxnHeader,
    operations: readonly TxnOperation[],
    effects: readonly StateChange[],
  ): void {
    const { id } = header;
    for (const key of keysOf(operations)) {
      const holder = this.locks.get(key);
      if (holder !== undefined) this.#wrong(node, `committed ${id} with ${key}, which ${holder} has locked`);
    }
    if (effects.length > 0) this.#learn(node, header, operations);
    this.#possible(node, operations, `committed ${id}`);
    const body = this.#all.known(id, header.digest);
    if (body === undefined) return this.#wrong(node, `committed ${id} as home, and nobody asked for that`);
    for (const { backendHash, scope, epoch } of body.require) {
      const held = this.holds.get(scope)?.epoch ?? null;
      if (backendHash !== this.hash || held !== epoch)
        this.#wrong(node, `committed ${id} with epoch ${epoch} of ${scope}, of which ${held ?? "none"} is held`);
    }
  }

  #learn(node: string, header: TxnHeader, operations: readonly TxnOperation[]): void {
    const number = bodyOf(operations);
    const body = number === null ? undefined : this.#all.asked(number);
    if (body === undefined || body.id !== header.id)
      return this.#wrong(node, `wrote operations of ${header.id} that nobody asked for`);
    const asked = (body.participants.get(this.hash) ?? []).map(textOf).join(" ");
    if (operations.map(textOf).join(" ") !== asked)
      this.#wrong(node, `wrote other operations of ${header.id} than were asked for`);
    const participants = [...body.participants.keys()].toSorted();
    if (header.home !== body.home || header.participants.join() !== participants.join())
      this.#wrong(node, `wrote ${header.id} with home ${header.home} and participants ${header.participants.join()}`);
    this.#all.learned(this.hash, header, body);
  }

  /** Versions and epochs that the operations name are as they are here. */
  #possible(node: string, operations: readonly TxnOperation[], what: string): void {
    for (const one of operations) {
      if (one.kind === "job-submit") continue;
      if (one.kind === "scope-release" || one.kind === "scope-acquire") {
        const held = this.holds.get(one.scope)?.epoch ?? null;
        const isSo = one.kind === "scope-acquire" ? held === null : held === one.epoch;
        if (!isSo) this.#wrong(node, `${what} with ${one.kind} of ${one.scope}, held in epoch ${held}`);
        continue;
      }
      const version = this.values.get(one.name)?.version ?? 0;
      if (one.ifVersion !== null && one.ifVersion !== version)
        this.#wrong(node, `${what} with ${one.name} of version ${one.ifVersion}, which has ${version}`);
    }
  }

  #effectsAre(node: string, id: string, operations: readonly TxnOperation[], effects: readonly StateChange[]): void {
    const expected = operations.flatMap((one): string[] => {
      switch (one.kind) {
        case "value-put":
          return [`put ${one.name} ${new TextDecoder().decode(one.data)}`];
        case "value-delete":
          return this.values.has(one.name) ? [`delete ${one.name}`] : [];
        case "scope-release":
          return this.holds.get(one.scope)?.epoch === one.epoch ? [`resign ${one.scope} ${one.epoch}`] : [];
        case "scope-acquire":
          return [`grant ${one.scope} ${one.session}`];
        case "value-check":
        case "job-submit":
          return [];
        default:
          return assertNever(one, "operation");
      }
    });
    const is = effects.map((one) => {
      switch (one.kind) {
        case "value-put":
          return `put ${one.name} ${new TextDecoder().decode(one.data)}`;
        case "value-deleted":
          return `delete ${one.name}`;
        case "resigned":
          return `resign ${one.scope} ${one.epoch}`;
        case "granted":
          return `grant ${one.scope} ${one.session}`;
        default:
          return one.kind;
      }
    });
    if (is.toSorted().join() !== expected.toSorted().join())
      this.#wrong(node, `committed ${id} as ${is.join()}, asked for ${expected.join()}`);
  }

  /** Before its effects: a version is the place of the record. */
  #resultsAre(
    node: string,
    { header, results, outbox }: TxnDecided,
    operations: readonly TxnOperation[],
    position: number,
  ): void {
    const expected = operations.map((one, at) => {
      const isWritten = one.kind === "value-put" || (one.kind === "value-delete" && this.values.has(one.name));
      const jobId = outbox.find(({ operation }) => operation === at)?.jobId ?? null;
      return { version: isWritten ? position : null, epoch: one.kind === "scope-acquire" ? position : null, jobId };
    });
    if (canonical(results) !== canonical(expected))
      this.#wrong(node, `committed ${header.id} with other results than it has`);
  }

  #outbox(node: string, event: TxnDecided, operations: readonly TxnOperation[], place: number): void {
    const { header, outbox } = event;
    const jobs = operations.flatMap((one, at) =>
      one.kind === "job-submit" ? [{ at, spec: canonical(one.spec) }] : [],
    );
    const is = outbox.map(({ operation, spec }) => ({ at: operation, spec: canonical(spec) }));
    if (canonical(is) !== canonical(jobs))
      this.#wrong(node, `committed ${header.id} with other jobs than were asked for`);
    this.#jobs.set(
      header.id,
      outbox.map(({ jobId }) => jobId),
    );
    this.#all.outbox(this.hash, header, outbox, place);
  }

  #settled(node: string, id: string, by: BackendHash | null): void {
    const txn = this.txns.get(id);
    if (txn === undefined || txn.phase === "prepared" || txn.phase === "staged")
      return this.#wrong(node, `wrote that ${id} is settled, which is ${txn?.phase ?? "unknown"}`);
    const { header } = txn;
    if (by === null) return this.#is({ ...txn, isKnown: true });
    this.#all.settled(node, this.hash, header, by);
    this.#is({ ...txn, settledBy: new Set([...txn.settledBy, by]) });
    if (!this.#open.has(id)) this.#reached("settled-by-all");
  }

  #is(txn: LocalTxn): void {
    const { id } = txn.header;
    this.txns.set(id, txn);
    if (this.#isNeeded(txn)) this.#open.add(id);
    else this.#open.delete(id);
  }

  /** It may not be forgotten. */
  #isNeeded({ header, phase, isDelivered, isKnown, settledBy }: LocalTxn): boolean {
    if (phase === "staged" || phase === "prepared") return true;
    if (phase !== "committed") return false;
    if (!isDelivered) return true;
    if (header.home !== this.hash) return !isKnown;
    return header.participants.some((one) => one !== this.hash && !settledBy.has(one));
  }

  // ---- effects -------------------------------------------------------------------------------------

  #effect(node: string, change: StateChange, position: number, of: string | null): void {
    switch (change.kind) {
      case "value-put":
        this.#unlocked(node, `value ${change.name}`, position, of);
        this.values.set(change.name, { version: position, data: change.data });
        return;
      case "value-deleted":
        this.#unlocked(node, `value ${change.name}`, position, of);
        this.values.delete(change.name);
        return;
      case "granted":
        this.#unlocked(node, `scope ${change.scope}`, position, of);
        if (this.holds.has(change.scope)) this.#wrong(node, `granted ${change.scope} at ${position} while it is held`);
        this.holds.set(change.scope, { epoch: position, session: change.session });
        this.#all.held(node, this.hash);
        return;
      case "resigned":
      case "expired":
      case "forced":
        if (this.locks.has(`scope ${change.scope}`)) this.#reached("scope-ended-while-locked");
        if (this.holds.get(change.scope)?.epoch === change.epoch) this.holds.delete(change.scope);
        return;
      default:
        return;
    }
  }

  #unlocked(node: string, key: string, position: number, of: string | null): void {
    const holder = this.locks.get(key);
    if (holder !== undefined && holder !== of)
      this.#wrong(node, `changed ${key} at ${position}, which ${holder} has locked`);
  }

  #raise(node: string, next: TcFence, what: string): void {
    const { fence } = this;
    if (fence !== null) {
      const isSameGeneration = generationOf(next) === generationOf(fence);
      if (next.clusterId !== fence.clusterId) this.#wrong(node, `took ${what} of another cluster of coordinators`);
      else if (next.term < fence.term) this.#wrong(node, `took ${what} in term ${next.term} after term ${fence.term}`);
      else if (isSameGeneration && next.recoveredBy !== fence.recoveredBy)
        this.#wrong(
          node,
          `took ${what} of a generation that ${next.recoveredBy} recovered, after one of ${fence.recoveredBy}`,
        );
    }
    this.fence = next;
  }

  // ---- states --------------------------------------------------------------------------------------

  /** What may not be forgotten is there, as it is by what is committed. */
  #remembers(node: string, fold: StateFold): void {
    for (const id of this.#open) {
      const { phase } = this.txns.get(id)!;
      const is = fold.txns.get(id);
      if (is?.phase !== phase || is.isSettled)
        this.#wrong(
          node,
          `has ${id} as ${is?.isSettled === true ? "settled" : (is?.phase ?? "nothing")}, which is ${phase}`,
        );
    }
    for (const [key, id] of this.locks) {
      const [kind, name] = [key.slice(0, 5), key.slice(6)];
      const by = fold.lockedBy(kind === "value" ? { value: name } : { scope: name });
      if (by !== id) this.#wrong(node, `has ${key} locked by ${by}, which ${id} has locked`);
    }
    if (this.values.size > VALUES_MAX) this.#wrong(node, `has ${this.values.size} values, more than there may be`);
  }

  compare(node: string, fold: StateFold): void {
    const position = this.positionOf(node);
    if (position === this.head) {
      const is = [...fold.values.from("", null)].map(({ name, version }) => `${name}@${version}`);
      const should = [...this.values].map(([name, { version }]) => `${name}@${version}`).toSorted();
      if (is.toSorted().join() !== should.join())
        this.#wrong(node, `has the values ${is.join()}; they are ${should.join()}`);
      for (const name of this.values.keys()) {
        const by = fold.lockedBy({ value: name });
        if (by !== (this.locks.get(`value ${name}`) ?? null))
          this.#wrong(node, `has ${name} locked by ${by}, which it is not`);
      }
      if (canonical(fold.txns.fence) !== canonical(this.fence))
        this.#wrong(node, `has the fence ${canonical(fold.txns.fence)}, which is ${canonical(this.fence)}`);
    }
    const snapshot = wholeOf(fold.snapshot()).slice();
    const known = this.#snapshots.get(position);
    if (known === undefined) this.#snapshots.set(position, snapshot);
    else if (!isSame(known, snapshot)) this.#wrong(node, `has another snapshot than others at ${position}`);
  }

  #local(header: TxnHeader, phase: Phase, operations: readonly TxnOperation[]): LocalTxn {
    const atMs = this.#all.nowMs;
    return { header, phase, operations, settledBy: new Set(), isKnown: false, isDelivered: false, atMs };
  }

  #reached(probe: TxnProbe): void {
    reached(this.#all.probes, probe);
  }

  #wrong(node: string, what: string): void {
    this.#all.wrong(node, what);
  }
}

function isOfTxn(change: StateChange): change is TxnEvent {
  return change.kind.startsWith("txn-");
}

function keysOf(operations: readonly TxnOperation[]): string[] {
  return operations.flatMap((one) => {
    if (one.kind === "job-submit") return [];
    return "scope" in one ? [`scope ${one.scope}`] : [`value ${one.name}`];
  });
}

/** What is compared of two headers. */
function headOf({ id, home, participants, digest }: TxnHeader): object {
  return { id, home, participants, digest };
}

function generationOf({ term }: TcFence): number {
  return Math.floor(term / GENERATION_TERMS);
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
