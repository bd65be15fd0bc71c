// Gets the segments that are missing here from the other nodes, one at a time, for as long as any is missing.
//
//   idle ──(something is missing)──▶ fetching ──(nothing more)──▶ idle
//              waiting ◀──(nobody has it)──┘      longer each time, up to a minute
//
// What every other member says it has let go will never come: history then starts after it here too, and it is no longer
// missing. What every other member says it lacks, or sends with other contents, is lost: whoever needs it goes on without
// (Archive.lost), and it is asked for all the same, because a copy may turn up. A member that does not answer may have it, so
// it is waited for.
//
// Invariants:
// - At most one segment is in memory, and never more bytes than the manifest says it has.
// - A peer can only waste time: bytes that are not the missing ones are refused by `install`, and the next peer is asked.
// - A peer that does not answer is given up after PIECE_TIMEOUT_MS, on the injected clock.

import { holdingOf, rangesOf, type EventRange, type Lacks, type SegmentEntry } from "../../../core/archive/index.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { ANSWER_BYTES_MAX } from "../../../core/kit/limits.ts";
import type { Random } from "../../../core/kit/random.ts";
import type { Clock, Timer } from "../../../ports/clock.ts";
import type { LogFields, Logger } from "../../../ports/logger.ts";
import * as limits from "../../limits.ts";
import type { Archive } from "../archive.ts";

/** So many rounds without any, and an operator is notified. */
const FAILURES_TOLD = 6;

const NOBODY_HAS_IT =
  "part of the history of events is missing here, and no member that answers has it; they are asked again, once a minute and when one connects";
const LOST =
  "events are lost: no member of the cluster has them. Lists and searches go on without them, and jobs run on; if a copy turns up it is fetched (docs/runbooks/cluster-history.md)";

/** One peer's archive. */
export interface SegmentSource {
  /** A piece of the segment's file, not empty, at most `bytesMax`; null where the peer does not have it. */
  fetch(firstSequence: number, offsetBytes: number, bytesMax: number): Promise<Uint8Array | null>;
  /** The last event that the peer has let go, 0 where it has kept all; null where it does not say. */
  start(): Promise<number | null>;
  /** Null where it does not say. */
  lacks(): Promise<Lacks | null>;
}

/** What is missing here, as far as it is known who may have it. */
export interface MissingHistory {
  readonly missing: readonly EventRange[];
  readonly lost: readonly EventRange[];
  /** Members that may have what is missing and not lost, and have not sent it in several rounds. */
  readonly awaited: readonly string[];
}

export interface FetcherOptions {
  readonly archive: Pick<Archive, "missing" | "install" | "onMissing" | "giveUpThrough" | "lost" | "lose">;
  /** Those that can be asked now. */
  readonly peers: () => readonly { readonly name: string; readonly source: SegmentSource }[];
  /** The names of all other members of the cluster, connected or not; null while this node is no member that knows them. */
  readonly members: () => readonly string[] | null;
  /** Something was found to be lost, or was put in its place: also what nobody has called lost since this process started. */
  readonly changed?: (() => void) | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export class SegmentFetcher {
  readonly #options: FetcherOptions;
  readonly #unlisten: () => void;
  #isStopped = false;
  /** Since the round that is under way began: what it has seen may be over. */
  #isPoked = false;
  #isRunning = false;
  #running: Promise<void> = Promise.resolve();
  /** End the wait for the next round, and for a piece. */
  #wake: (() => void) | null = null;
  #abandon: (() => void) | null = null;
  /** The segments that were asked for last: a round begins after them, so that some that nobody has do not keep out the rest. */
  #tried = { wanted: 0, lost: 0 };
  #installed = 0;
  #refused = 0;
  /** Members whose bytes for a segment were others than those that are missing, by its first event. */
  readonly #wrongly = new Map<number, Set<string>>();
  #awaited: readonly string[] = [];
  /** Rounds in a row that brought nothing. */
  #failures = 0;

  constructor(options: FetcherOptions) {
    this.#options = options;
    this.#unlisten = options.archive.onMissing(() => this.poke());
  }

  /** Segments that were put in place, and pieces of history that peers sent and that were refused. */
  get counts(): { readonly installed: number; readonly refused: number } {
    return { installed: this.#installed, refused: this.#refused };
  }

  get standing(): MissingHistory {
    const { archive } = this.#options;
    const missing = archive.missing();
    const isAwaited = missing.length > archive.lost().length && this.#failures >= FAILURES_TOLD;
    return { missing: rangesOf(missing), lost: rangesOf(archive.lost()), awaited: isAwaited ? this.#awaited : [] };
  }

  /** Looks at once: something is missing, or a peer has come back. */
  poke(): void {
    if (this.#isStopped) return;
    this.#isPoked = true;
    this.#wake?.();
    if (!this.#isRunning) this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unlisten();
    this.#wake?.();
    this.#abandon?.();
    await this.#running;
  }

  /** Ends without an await behind the last look, so that a poke is never missed. */
  async #run(): Promise<void> {
    const { archive, logger } = this.#options;
    this.#isRunning = true;
    let isTold = false;
    this.#failures = 0;
    while (!this.#isStopped) {
      this.#isPoked = false;
      const missing = archive.missing();
      if (missing.length === 0) {
        if (isTold) logger.info({ event: "history" }, "the history of events is whole");
        this.#wrongly.clear();
        break;
      }
      if (!isTold)
        logger.info(about(missing), "part of the history of events is missing here: the others are asked for it");
      isTold = true;
      try {
        const fetched = await this.#round(missing);
        if (fetched === missing.length || (await this.#letGo())) continue;
        await this.#judge();
        this.#failures = fetched > 0 ? 0 : this.#failures + 1;
        if (this.#failures === FAILURES_TOLD && this.#awaited.length > 0)
          logger.warn({ ...about(missing), awaited: this.#awaited.join(",") }, NOBODY_HAS_IT);
      } catch (error) {
        // The archive has failed or was closed, and says so itself.
        logger.error({ error: error instanceof Error ? error.message : String(error) }, "no more history is fetched");
        this.#isStopped = true;
        break;
      }
      await this.#wait(
        Math.min(
          limits.FETCH_RETRY_MS_MAX,
          limits.FETCH_RETRY_MS_MIN * 2 ** Math.min(this.#failures, limits.FETCH_DOUBLINGS_MAX),
        ),
      );
    }
    this.#isRunning = false;
  }

  /** What a member may have first: each kind has its own failures, so that neither keeps out the other. */
  async #round(missing: readonly SegmentEntry[]): Promise<number> {
    const lost = new Set(this.#options.archive.lost().map(({ first }) => first));
    const { wanted = [], lost: unlikely = [] } = Object.groupBy(missing, ({ first }) =>
      lost.has(first) ? "lost" : "wanted",
    );
    return (await this.#roundOf("wanted", wanted)) + (await this.#roundOf("lost", unlikely));
  }

  async #roundOf(kind: "wanted" | "lost", missing: readonly SegmentEntry[]): Promise<number> {
    let fetched = 0;
    let failuresInARow = 0;
    const at = missing.findIndex(({ first }) => first > this.#tried[kind]);
    for (const entry of at < 0 ? missing : [...missing.slice(at), ...missing.slice(0, at)]) {
      if (this.#isStopped || failuresInARow === limits.FETCH_FAILURES_MAX) break;
      this.#tried[kind] = entry.first;
      if (await this.#fetch(entry)) {
        fetched++;
        failuresInARow = 0;
      } else failuresInARow++;
    }
    return fetched;
  }

  /** True: some of what was missing is nowhere any more, and is not missed any more. */
  async #letGo(): Promise<boolean> {
    const { archive, logger } = this.#options;
    const through = await this.#letGoByAll();
    const last = archive.missing().findLast((entry) => entry.last <= through);
    if (last === undefined || this.#isStopped) return false;
    if (!(await archive.giveUpThrough(last))) {
      // What follows is missing too, and tells where history starts: it is asked for next.
      this.#tried = { wanted: last.first, lost: last.first };
      return false;
    }
    logger.info(
      { event: "history", first: last.last + 1 },
      `events up to ${last.last} were let go by all other nodes: the history starts behind them here too`,
    );
    return true;
  }

  /** Which of what is missing no member has, and who may have the rest. */
  async #judge(): Promise<void> {
    const { archive, logger, changed } = this.#options;
    const wanted = archive.missing();
    const answers = await this.#answers();
    if (answers === null || this.#isStopped) return;
    const mayHave = (entry: SegmentEntry): string[] =>
      [...answers].flatMap(([name, lacks]) => {
        const isGone = lacks !== null && holdingOf(lacks, entry) === "lacks";
        return isGone || this.#wrongly.get(entry.first)?.has(name) === true ? [] : [name];
      });
    const known = new Set(archive.lost().map(({ first }) => first));
    const awaited = new Set<string>();
    const lost = wanted.filter((entry) => {
      if (known.has(entry.first) || isLetGo([...answers.values()], entry)) return false;
      const names = mayHave(entry);
      for (const name of names) awaited.add(name);
      return names.length === 0;
    });
    this.#awaited = [...awaited];
    if (lost.length === 0) return;
    for (const entry of lost) archive.lose(entry);
    for (const { first, last } of rangesOf(lost)) logger.error({ event: "history-lost", first, last }, LOST);
    changed?.();
  }

  /** What each other member says that it lacks; null where it does not say. Null altogether: who they are is not known here. */
  async #answers(): Promise<Map<string, Lacks | null> | null> {
    const members = this.#options.members();
    if (members === null) return null;
    const peers = new Map(this.#options.peers().map(({ name, source }) => [name, source]));
    const answers = new Map<string, Lacks | null>();
    for (const name of members) {
      answers.set(name, await this.#inTime(peers.get(name)?.lacks() ?? Promise.resolve(null)));
      if (this.#isStopped) return null;
    }
    return answers;
  }

  /** The last event that every other member has let go; 0 where there is none, or one of them does not say. */
  async #letGoByAll(): Promise<number> {
    const peers = new Map(this.#options.peers().map(({ name, source }) => [name, source]));
    let through = Infinity;
    for (const name of this.#options.members() ?? []) {
      const start = (await this.#inTime(peers.get(name)?.start() ?? Promise.resolve(null))) ?? 0;
      through = Math.min(through, start);
      if (through === 0) return 0;
    }
    return Number.isFinite(through) ? through : 0;
  }

  async #fetch(entry: SegmentEntry): Promise<boolean> {
    const { random } = this.#options;
    const peers = this.#options.peers();
    const from = peers.length === 0 ? 0 : random.below(peers.length);
    for (let i = 0; i < peers.length && !this.#isStopped; i++) {
      const { name, source } = peers[(from + i) % peers.length]!;
      const bytes = await this.#download(source, entry);
      if (bytes !== null && !this.#isStopped && (await this.#install(name, bytes, entry))) return true;
    }
    return false;
  }

  async #install(peer: string, bytes: Uint8Array, entry: SegmentEntry): Promise<boolean> {
    const { archive, logger } = this.#options;
    const wasLost = archive.lost().some(({ first }) => first === entry.first);
    try {
      await archive.install(bytes, entry);
    } catch (error) {
      if (!(error instanceof TenureError) || error.code !== "CHAIN_BROKEN") throw error;
      this.#refused++;
      this.#wrongly.set(entry.first, (this.#wrongly.get(entry.first) ?? new Set()).add(peer));
      logger.warn({ peer, first: entry.first, last: entry.last }, error.message);
      return false;
    }
    this.#installed++;
    this.#wrongly.delete(entry.first);
    if (wasLost) {
      const { first, last } = entry;
      logger.info({ event: "history-found", first, last, peer }, "events that were lost are here again");
    }
    // Views may have been built without it by the process before, which knew it as lost.
    this.#options.changed?.();
    return true;
  }

  async #download(source: SegmentSource, entry: SegmentEntry): Promise<Uint8Array | null> {
    const bytes = new Uint8Array(entry.sizeBytes);
    for (let at = 0; at < bytes.length;) {
      const wantedBytes = Math.min(ANSWER_BYTES_MAX, bytes.length - at);
      const piece = await this.#inTime(source.fetch(entry.first, at, wantedBytes));
      if (piece === null || piece.length === 0 || piece.length > wantedBytes || this.#isStopped) return null;
      bytes.set(piece, at);
      at += piece.length;
    }
    return bytes;
  }

  /** Null where it fails, takes too long, or nobody wants it any more. */
  #inTime<T>(answer: Promise<T | null>): Promise<T | null> {
    return new Promise((resolve) => {
      const settle = (result: T | null): void => {
        timer.cancel();
        this.#abandon = null;
        resolve(result);
      };
      const timer = this.#after(limits.PIECE_TIMEOUT_MS, () => settle(null));
      this.#abandon = () => settle(null);
      answer.then(settle, () => settle(null));
    });
  }

  #wait(ms: number): Promise<void> {
    if (this.#isStopped || this.#isPoked) return Promise.resolve();
    const { random } = this.#options;
    return new Promise((resolve) => {
      const timer = this.#after(ms * random.between(0.5, 1), () => this.#wake?.());
      this.#wake = () => {
        this.#wake = null;
        timer.cancel();
        resolve();
      };
    });
  }

  #after(ms: number, fire: () => void): Timer {
    const { clock } = this.#options;
    return clock.setTimer(clock.monotonicMs() + ms, fire);
  }
}

/** By all of them: history starts after it here too, as soon as what follows it is here. */
function isLetGo(answers: readonly (Lacks | null)[], { last }: SegmentEntry): boolean {
  return answers.length > 0 && answers.every((lacks) => lacks !== null && last <= lacks.start);
}

function about(missing: readonly SegmentEntry[]): LogFields {
  return { event: "history", segments: missing.length, first: missing[0]!.first, last: missing.at(-1)!.last };
}
