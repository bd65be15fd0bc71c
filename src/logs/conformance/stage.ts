// One case on its stage: its leaders, its subscribers, and the ledger of everything that was appended with what was
// answered. At the end of every case, whatever it was about, faults are over and the ledger is compared with the log.
// Invariant: every wait has a limit, and says what it waited for.

import { TenureError } from "../../core/kit/errors.ts";
import type { Log, LogAppended, LogHead, LogRecord } from "../../ports/log.ts";
import { ConformanceFailure, expect, type WrittenCase } from "../../loops/conformance.ts";
import type { LogFault, LogWorld } from "./world.ts";

export type Case = WrittenCase<LogStage, LogFault>;

const STEP_MS = 5;
const PATIENCE_MS = 30_000;
const READ_MAX = 1_000;

export interface Leader {
  readonly node: string;
  readonly epoch: number;
  readonly log: Log;
  readonly head: LogHead;
  /** The end of what was appended, for pipelining. */
  end: number;
}

export interface Append {
  readonly texts: readonly string[];
  readonly after: number;
  readonly epoch: number;
  readonly node: string;
  /** Its process died with it under way: nobody answers any more. */
  lost: boolean;
  answer: LogAppended | { readonly outcome: "rejected"; readonly error: unknown } | null;
}

export interface Told {
  readonly node: string;
  readonly records: LogRecord[];
  compacted: number;
  stop: () => void;
}

export class LogStage {
  readonly world: LogWorld;
  readonly a: string;
  readonly b: string;
  readonly c: string;
  readonly #ledger: Append[] = [];
  readonly #impaired = new Map<string, LogFault>();
  #texts = 0;

  constructor(world: LogWorld) {
    this.world = world;
    [this.a, this.b, this.c] = world.nodes;
  }

  // ---- leaders -------------------------------------------------------------------------------------

  /** Leads and has opened. */
  async lead(node: string): Promise<Leader> {
    const epoch = await this.world.lead(node);
    const log = this.world.log(node);
    const opened = await this.result(log.open(epoch), `${node} to open epoch ${epoch}`);
    expect(opened.outcome === "opened", `${node} leads in epoch ${epoch}, and its open was ${opened.outcome}`);
    expect(opened.head.epoch === epoch, `opened epoch ${epoch}, but the head says ${opened.head.epoch}`);
    return { node, epoch, log, head: opened.head, end: opened.head.position };
  }

  /** Texts that nobody else appends. */
  texts(count: number): string[] {
    return Array.from({ length: count }, () => `record-${++this.#texts}`);
  }

  /** Sends an append and does not wait. `after`: other than the leader's end. */
  send(leader: Leader, count = 1, after = leader.end): Append {
    const batch = this.texts(count).map((text) => new TextEncoder().encode(text));
    return this.sendBytes(leader, batch, after);
  }

  /** As `send`, for records that a case makes up; as texts they must differ from all others. */
  sendBytes(leader: Leader, batch: readonly Uint8Array[], after = leader.end): Append {
    const { node, epoch, log } = leader;
    const append: Append = { texts: batch.map(textOf), after, epoch, node, lost: false, answer: null };
    if (after === leader.end) leader.end += batch.length;
    this.#ledger.push(append);
    log.append(epoch, after, batch).then(
      (answer) => {
        append.answer = answer;
      },
      (error: unknown) => {
        append.answer = { outcome: "rejected", error };
      },
    );
    return append;
  }

  /** Appends and waits: it must be committed where it belongs. */
  async commit(leader: Leader, count = 1): Promise<Append> {
    const append = this.send(leader, count);
    await this.answered(append);
    this.committed(append);
    return append;
  }

  committed(append: Append): void {
    const { answer, after, texts } = append;
    expect(answer?.outcome === "committed", `expected ${texts[0]} to be committed, and it is ${said(answer)}`);
    const end = after + texts.length;
    expect(
      answer.position === end,
      `${texts.length} records behind ${after} end at ${end}, but the answer says ${answer.position}`,
    );
  }

  /** The answer says that nothing was written. */
  refused(append: Append, why: string): void {
    const { answer } = append;
    expect(
      answer?.outcome === "fenced" || answer?.outcome === "rejected",
      `${why}: nothing may be written, but the append is ${said(answer)}`,
    );
    if (answer.outcome === "rejected") expect(TenureError.is(answer.error), `${why}: ${String(answer.error)}`);
  }

  /** It is of an epoch that is over. */
  async fenced(append: Append): Promise<void> {
    await this.answered(append);
    expect(append.answer?.outcome === "fenced", `an append of an epoch that is over is ${said(append.answer)}`);
  }

  /** Until its first records are not kept any more; the number of the last. */
  async overfill(leader: Leader): Promise<number> {
    const count = this.world.forgottenAfterRecords + this.world.keptRecordsMin;
    for (let sent = 0; sent < count; sent += 10) this.send(leader, Math.min(10, count - sent));
    await this.reaches(leader.node, count);
    return count;
  }

  answered(...appends: readonly Append[]): Promise<void> {
    return this.until(
      () => appends.every(({ answer, lost }) => answer !== null || lost),
      "every append to be answered",
    );
  }

  // ---- readers -------------------------------------------------------------------------------------

  subscribe(node: string, from: number): Told {
    const told: Told = { node, records: [], compacted: 0, stop: () => undefined };
    told.stop = this.world.log(node).subscribe(
      from,
      (record) => {
        expect(told.compacted === 0, `${node} was told of record ${record.position} after it was told "compacted"`);
        told.records.push(record);
      },
      () => {
        told.compacted++;
      },
    );
    return told;
  }

  /** What was told is this, from `from` on, without gaps and repetitions. */
  toldExactly(told: Told, from: number, texts: readonly string[]): void {
    const positions = told.records.map(({ position }) => position);
    const expected = texts.map((_, at) => from + at);
    expect(
      String(positions) === String(expected),
      `${told.node} subscribed from ${from}: expected positions ${String(expected)}, told ${String(positions)}`,
    );
    const got = told.records.map(({ data }) => textOf(data));
    expect(String(got) === String(texts), `${told.node}: expected ${String(texts)}, told ${String(got)}`);
  }

  read(node: string, from: number, max: number): Promise<readonly LogRecord[]> {
    return this.result(this.world.log(node).read(from, max), `${node} to read from ${from}`);
  }

  /** Waits until this node knows of everything up to the position. */
  reaches(node: string, position: number): Promise<void> {
    return this.until(() => this.world.log(node).head().position >= position, `${node} to reach ${position}`);
  }

  // ---- time and faults -----------------------------------------------------------------------------

  async until(condition: () => boolean, what: string, limitMs = PATIENCE_MS): Promise<void> {
    for (let waitedMs = 0; !condition(); waitedMs += STEP_MS) {
      if (waitedMs >= limitMs) throw new ConformanceFailure(`waited ${limitMs} ms in vain for ${what}`);
      await this.world.advance(STEP_MS);
    }
  }

  async result<T>(promise: Promise<T>, what: string): Promise<T> {
    let pending = true;
    const over = (): void => {
      pending = false;
    };
    promise.then(over, over);
    await this.until(() => !pending, what);
    return promise;
  }

  /** As `result`, for what may be refused. */
  outcome<T>(
    promise: Promise<T>,
    what: string,
  ): Promise<T | { readonly outcome: "rejected"; readonly error: unknown }> {
    const caught = promise.catch((error: unknown) => ({ outcome: "rejected" as const, error }));
    return this.result(caught, what);
  }

  async cut(node: string): Promise<void> {
    this.#impaired.set(node, "cut");
    await this.world.cut?.(node);
  }

  async crash(node: string): Promise<void> {
    this.#impaired.set(node, "crash");
    for (const append of this.#ledger) append.lost ||= append.node === node && append.answer === null;
    await this.world.crash?.(node);
  }

  /** Heals or restarts. */
  async mend(node: string): Promise<void> {
    const fault = this.#impaired.get(node);
    this.#impaired.delete(node);
    if (fault === "cut") await this.world.heal?.(node);
    if (fault === "crash") await this.world.restart?.(node);
  }

  // ---- the ledger ----------------------------------------------------------------------------------

  /** The faults are over, a new epoch is opened, and every node must have the same log: what was promised, and no more. */
  async checkLedger(): Promise<void> {
    for (const node of this.#impaired.keys()) await this.mend(node);
    const leader = await this.lead(this.a);
    await this.answered(...this.#ledger);
    for (const node of this.world.nodes) await this.reaches(node, leader.head.position);
    for (const node of this.world.nodes) {
      const { from, texts } = await this.contents(node, leader.head.position);
      this.#compare(node, from, texts);
    }
  }

  /** Everything that is kept, up to `end`. */
  async contents(node: string, end: number): Promise<{ from: number; texts: string[] }> {
    const from = await this.#firstKept(node, end);
    const texts: string[] = [];
    while (from + texts.length <= end) {
      const records = await this.read(node, from + texts.length, READ_MAX);
      expect(
        records.length > 0,
        `${node} says that its head is ${end}, but reading ends at ${from + texts.length - 1}`,
      );
      for (const { data } of records) texts.push(textOf(data));
    }
    return { from, texts };
  }

  async #firstKept(node: string, end: number): Promise<number> {
    let low = 1;
    let high = end + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const got = await this.outcome(this.world.log(node).read(middle, 1), `${node} to read ${middle}`);
      if ("outcome" in got) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compare(node: string, from: number, texts: readonly string[]): void {
    const at = new Map<string, number>();
    for (const [offset, text] of texts.entries()) {
      expect(!at.has(text), `${node} has ${text} twice: at ${at.get(text) ?? 0} and at ${from + offset}`);
      at.set(text, from + offset);
    }
    for (const append of this.#ledger) this.#compareOne(node, from, at, append);
    const known = new Set(this.#ledger.flatMap((append) => append.texts));
    const stranger = texts.find((text) => !known.has(text));
    expect(stranger === undefined, `${node} has ${stranger ?? ""}, which nobody appended`);
  }

  #compareOne(node: string, from: number, at: ReadonlyMap<string, number>, { texts, after, answer }: Append): void {
    // What was said of records that are not kept any more can't be looked up.
    if (after + 1 < from) return;
    const present = texts.filter((text) => at.has(text));
    const what = `${texts[0] ?? ""} and the ${texts.length - 1} behind it`;
    expect(
      present.length === 0 || present.length === texts.length,
      `an append is all or nothing, but of ${what} ${node} has ${present.length} of ${texts.length}`,
    );
    const isThere = present.length > 0;
    if (answer?.outcome === "committed")
      expect(isThere, `${what} were called committed, and ${node} does not have them`);
    if (answer?.outcome === "fenced" || answer?.outcome === "rejected")
      expect(!isThere, `${what} were called ${answer.outcome}, and ${node} has them`);
    if (!isThere) return;
    for (const [offset, text] of texts.entries()) {
      const position = after + 1 + offset;
      expect(at.get(text) === position, `${text} belongs at ${position}, and ${node} has it at ${at.get(text) ?? 0}`);
    }
  }
}

export function textOf(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}

export function said(answer: Append["answer"]): string {
  if (answer === null) return "not answered";
  return answer.outcome === "rejected" ? `rejected: ${String(answer.error)}` : answer.outcome;
}
