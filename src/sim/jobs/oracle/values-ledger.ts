// Scopes and values by the committed records of the state log alone, and what writers, readers and watchers were answered.
//
// - A version is the place of its record in the log. All nodes apply the same records, and have the same state and the same snapshot at one
//   position.
// - A write with a fence is in the log only where that epoch was held then, and one of a version directly after that version.
// - What was acknowledged is in the log, once, as it was asked for and with the version that was answered; what was refused never is. A
//   refusal is true: what it says was so at some moment since the server was asked.
// - A node lists what it has applied, and says to whoever watches each change once, in order.
// - A server of a release that can't read records of values is sent none.

import { type TenureError, VersionConflictError } from "../../../core/kit/errors.ts";
import { wholeOf } from "../../../core/kit/pieces.ts";
import { decodeRecord, isOfValue, type StateChange, type StateFold } from "../../../core/state/index.ts";
import type { ValueEvent } from "../../../core/values/index.ts";
import type { LogRecord } from "../../../ports/log.ts";
import type { ValueChanges, ValueFence, ValuesPage, ValueView } from "../../../ports/values.ts";
import { type JobsProbeCounts, reached } from "../probes.ts";
import { isSame } from "./kit.ts";
import { ValueHistory, versionOf } from "./value-history.ts";

/** So many records apart whole states are compared. */
const STATES_EVERY = 8;
const NOTHING_WRITTEN = [
  "STALE_EPOCH",
  "VERSION_CONFLICT",
  "NOT_SUPPORTED",
  "NOT_LEADER",
  "OVERLOADED",
  "UNCOMMITTED_LIMIT",
  "TRANSFER_IN_PROGRESS",
  "ERR_NO_LEADER",
];

/** What a writer asked for, once: asked again, it is another one. */
export interface ValueCall {
  readonly number: number;
  readonly kind: "put" | "delete";
  readonly name: string;
  /** The content, as canonical JSON; of a deletion nothing. */
  readonly text: string;
  readonly ifVersion: number | null;
  readonly fence: ValueFence | null;
  fate: "open" | "written" | "refused" | "unknown";
}

export interface ValuesLedgerOptions {
  readonly probes: JobsProbeCounts;
  readonly wrong: (node: string, what: string) => void;
  /** Of a release that can't read values. */
  readonly isOlder: (node: string) => boolean;
}

export class ValuesLedger {
  readonly history = new ValueHistory();
  readonly #options: ValuesLedgerOptions;
  readonly #records: Uint8Array[] = [];
  readonly #positions = new Map<string, number>();
  readonly #snapshots = new Map<number, Uint8Array>();
  readonly #calls: ValueCall[] = [];
  /** The versions of writes by their calls. */
  readonly #written = new Map<number, number>();
  /** Versions of deletions that were acknowledged. */
  readonly #deletions = new Map<number, ValueCall>();

  constructor(options: ValuesLedgerOptions) {
    this.#options = options;
  }

  /** The last committed record's position. */
  get head(): number {
    return this.#records.length;
  }

  positionOf(node: string): number {
    return this.#positions.get(node) ?? 0;
  }

  // ---- what is committed ---------------------------------------------------------------------------

  started(node: string): void {
    this.#positions.set(node, 0);
  }

  /** Before it is applied there. */
  committed(node: string, { position, data }: LogRecord): void {
    const before = this.positionOf(node);
    if (position !== before + 1) this.#wrong(node, `applied state record ${position} after ${before}`);
    this.#positions.set(node, position);
    const known = this.#records[position - 1];
    const record = decodeRecord(data);
    if (record.kind !== "changes") return this.#wrong(node, `can't read state record ${position}`);
    if (record.changes.some(isOfValue) && this.#options.isOlder(node))
      this.#wrong(node, `is of a release that can't read values, and has to apply state record ${position}`);
    if (known !== undefined) {
      if (!isSame(known, data)) this.#wrong(node, `applied another state record ${position} than others`);
      return;
    }
    this.#records.push(data.slice());
    for (const change of record.changes) this.#change(node, change, position);
  }

  /** After it was applied there. */
  folded(node: string, fold: StateFold): void {
    const position = this.positionOf(node);
    if (fold.counts.malformed + fold.counts.unfit > 0) this.#wrong(node, `ignored state record ${position}`);
    if (position % STATES_EVERY === 0) this.#compare(node, fold);
  }

  restored(node: string, position: number, fold: StateFold): void {
    if (position > this.head) this.#wrong(node, `restored state record ${position}, which nobody has`);
    this.#positions.set(node, position);
    if (fold.values.size > 0) reached(this.#options.probes, "values-restored");
    if (fold.values.size > 0 && this.#options.isOlder(node))
      this.#wrong(node, `is of a release that can't read values, and restored some`);
    this.#compare(node, fold);
  }

  #change(node: string, change: StateChange, position: number): void {
    if (isOfValue(change)) this.#value(node, change, position);
    this.history.take(change, position);
  }

  #value(node: string, event: ValueEvent, position: number): void {
    const { name, fence } = event;
    if (fence !== null && this.history.holdAt(fence.scope, position).hold?.epoch !== fence.epoch)
      this.#wrong(node, `record ${position} writes ${name} in epoch ${fence.epoch} of ${fence.scope}, not held then`);
    if (event.kind === "value-deleted") return;
    const text = new TextDecoder().decode(event.data);
    const call = this.#calls[(JSON.parse(text) as { call: number }).call];
    if (call === undefined) return this.#wrong(node, `record ${position} is a write that nobody asked for`);
    if (this.#written.has(call.number)) this.#wrong(node, `call ${call.number} was written again at ${position}`);
    this.#written.set(call.number, position);
    if (call.fate === "refused") this.#wrong(node, `call ${call.number} was refused, and is written at ${position}`);
    if (call.name !== name || call.text !== text || !isFence(call.fence, fence))
      this.#wrong(node, `record ${position} is not what call ${call.number} asked for`);
    this.#follows(node, call, position);
  }

  /** A write of a version comes directly after that version. */
  #follows(node: string, { number, name, ifVersion }: ValueCall, position: number): void {
    const before = this.history.versionAt(name, position - 1);
    if (ifVersion !== null && ifVersion !== before)
      this.#wrong(node, `call ${number} of version ${ifVersion} of ${name} is written at ${position} after ${before}`);
  }

  #compare(node: string, fold: StateFold): void {
    const position = this.positionOf(node);
    const is = [...fold.values.from("", null)].map(({ name, version }) => `${name}@${version}`);
    const should = this.history.list("", position);
    if (is.join() !== should.join())
      this.#wrong(node, `has the values ${is.join()} at ${position}; by what is committed they are ${should.join()}`);
    for (const scope of this.history.scopes) {
      const epoch = fold.scopes.get(scope)?.hold?.epoch ?? null;
      if (epoch !== (this.history.holdAt(scope, position).hold?.epoch ?? null))
        this.#wrong(node, `has epoch ${epoch} of ${scope} at ${position}, which is not what is committed`);
    }
    const snapshot = wholeOf(fold.snapshot()).slice();
    const known = this.#snapshots.get(position);
    if (known === undefined) this.#snapshots.set(position, snapshot);
    else if (!isSame(known, snapshot)) this.#wrong(node, `has another snapshot than others at ${position}`);
  }

  // ---- what writers are answered -------------------------------------------------------------------

  /** `content`: what is written, given the number of the call, which it must hold. */
  call(
    terms: Pick<ValueCall, "kind" | "name" | "ifVersion" | "fence">,
    content: (number: number) => string = () => "",
  ): ValueCall {
    const number = this.#calls.length;
    const call: ValueCall = { ...terms, number, text: content(number), fate: "open" };
    this.#calls.push(call);
    return call;
  }

  /** `version` null: there was nothing to delete. `from`: the head when the server was asked. */
  written(node: string, from: number, call: ValueCall, version: number | null): void {
    const { number, kind, name, fence } = call;
    if (version === null) {
      call.fate = "refused";
      const isSo = this.history.valuesSince(name, from).some((one) => versionOf(one) === 0);
      if (!isSo) this.#wrong(node, `said that there is no ${name} to delete, and there was one since ${from}`);
      return;
    }
    call.fate = "written";
    if (kind === "put") {
      if (this.#written.get(number) !== version)
        this.#wrong(node, `said version ${version} of call ${number}, which is not what is committed`);
      return;
    }
    const { text, position } = this.history.valueAt(name, version);
    if (text !== null || position !== version || this.#deletions.has(version))
      return this.#wrong(node, `said that call ${number} deleted ${name} at ${version}, which is not committed`);
    this.#deletions.set(version, call);
    this.#follows(node, call, version);
    if (fence !== null && this.history.holdAt(fence.scope, version).hold?.epoch !== fence.epoch)
      this.#wrong(node, `deleted ${name} at ${version} for epoch ${fence.epoch}, which was not held then`);
  }

  refused(node: string, from: number, call: ValueCall, error: TenureError): void {
    const { probes } = this.#options;
    const { number, name, ifVersion, fence } = call;
    const { code } = error;
    if (code === "OUTCOME_UNKNOWN") return void (call.fate = "unknown");
    if (!NOTHING_WRITTEN.includes(code)) return this.#wrong(node, `answered a writer with ${code}: ${error.message}`);
    call.fate = "refused";
    if (this.#written.has(number)) this.#wrong(node, `refused call ${number} (${code}), which is written`);
    if (code === "NOT_SUPPORTED") reached(probes, "values-not-readable-yet");
    if (code === "STALE_EPOCH") {
      reached(probes, "stale-write-refused");
      this.stale(node, from, fence);
    }
    if (!(error instanceof VersionConflictError)) return;
    reached(probes, "version-conflict-told");
    const isSo = this.history
      .valuesSince(name, from)
      .some((one) => versionOf(one) !== ifVersion && versionOf(one) === (error.version ?? 0));
    if (!isSo)
      this.#wrong(
        node,
        `refused call ${number} of version ${ifVersion} of ${name}, said to have ${error.version}, which it had not since ${from}`,
      );
  }

  /** Whoever led in this epoch was refused as of another one. */
  stale(node: string, from: number, fence: ValueFence | null): void {
    const isSo =
      fence !== null && this.history.holdsSince(fence.scope, from).some(({ hold }) => hold?.epoch !== fence.epoch);
    if (!isSo) this.#wrong(node, `said stale of epoch ${fence?.epoch} of ${fence?.scope}, held all the time`);
  }

  granted(node: string, scope: string, epoch: number, session: string): void {
    const { position, hold } = this.history.holdAt(scope, epoch);
    if (position !== epoch || hold?.session !== session)
      this.#wrong(node, `granted epoch ${epoch} of ${scope} to ${session}, which is not committed`);
  }

  // ---- what readers and watchers are shown: in the turn in which it was taken -----------------------

  shown(node: string, name: string, view: ValueView | null): void {
    const { text, position } = this.history.valueAt(name, this.positionOf(node));
    if (view === null ? text !== null : !isView(view, text, position))
      this.#wrong(node, `shows ${name} as ${JSON.stringify(view)}; it is version ${position}, ${text}`);
  }

  /** A page after this name. */
  listed(node: string, prefix: string, after: string | null, { values, next, asOf }: ValuesPage): void {
    const position = this.positionOf(node);
    const all = this.history
      .list(prefix, position)
      .filter((one) => after === null || one.slice(0, one.lastIndexOf("@")) > after);
    const should = next === null ? all : all.slice(0, values.length);
    const is = values.map(({ name, version }) => `${name}@${version}`);
    if (is.join() !== should.join() || asOf !== position)
      this.#wrong(node, `lists ${is.join()} as of ${asOf} at ${position}; they are ${should.join()}`);
    for (const one of values) this.shown(node, one.name, one);
  }

  /** The watcher who waited above `after` was woken. */
  woken(node: string, prefix: string, after: number, through: number): void {
    if (through < after || this.history.between(prefix, after, through).length > 0)
      this.#wrong(node, `passed changes of "${prefix}" over: it woke a watcher of ${after} with ${through}`);
  }

  changed(node: string, prefix: string, after: number, limit: number, { changes, through }: ValueChanges): void {
    const is = changes.map(({ kind, name, version }) => `${kind} ${name}@${version}`);
    const should = this.history
      .between(prefix, after, through)
      .map(({ kind, name, version }) => `${kind} ${name}@${version}`);
    const isFar = through > Math.max(after, this.positionOf(node));
    if (is.join() !== should.join() || isFar || changes.length > limit)
      this.#wrong(
        node,
        `tells of ${is.join()} from ${after} through ${through}, at most ${limit}; they are ${should.join()}`,
      );
    for (const one of changes) {
      const { text, position } = this.history.valueAt(one.name, one.version);
      if (one.kind === "put" && !isView(one, text, position))
        this.#wrong(node, `tells of another ${one.name}@${one.version} than the committed one`);
    }
  }

  // ---- the end -------------------------------------------------------------------------------------

  /** Null: what writers were not told goes together with what is committed. Nothing is on the way any more. */
  problem(counters: readonly string[]): string | null {
    for (const { number, kind, fate } of this.#calls) {
      if (kind !== "put" || fate !== "unknown") continue;
      reached(this.#options.probes, this.#written.has(number) ? "unknown-write-took-effect" : "unknown-write-did-not");
    }
    const deletions = this.history.changes.filter(
      ({ kind, version }) => kind === "deleted" && !this.#deletions.has(version),
    );
    for (const name of new Set(deletions.map((one) => one.name))) {
      const made = deletions.filter((one) => one.name === name).length;
      const open = this.#calls.filter((one) => one.name === name && one.kind === "delete" && isOpen(one)).length;
      if (made > open) return `${made} deletions of ${name} were told to nobody, and ${open} may have been made`;
    }
    for (const name of counters) {
      const all = this.#calls.filter((one) => one.name === name);
      const sure = all.filter(({ fate }) => fate === "written").length;
      const most = sure + all.filter(isOpen).length;
      const { text } = this.history.valueAt(name, this.head);
      const count = text === null ? 0 : (JSON.parse(text) as { count: number }).count;
      if (count < sure || count > most) return `${name} is ${count}, after ${sure} to ${most} increments`;
    }
    return null;
  }

  #wrong(node: string, what: string): void {
    this.#options.wrong(node, what);
  }
}

function isOpen({ fate }: ValueCall): boolean {
  return fate === "open" || fate === "unknown";
}

function isFence(one: ValueFence | null, other: ValueFence | null): boolean {
  return one?.scope === other?.scope && one?.epoch === other?.epoch;
}

/** Contents are written as canonical JSON is: names in order. */
function isView(
  { value, version }: Pick<ValueView, "value" | "version">,
  text: string | null,
  position: number,
): boolean {
  return version === position && JSON.stringify(value) === text;
}
