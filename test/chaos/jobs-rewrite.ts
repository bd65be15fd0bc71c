// Readers of events that live through the whole of `chaos jobs`, and its last act on Postgres: a standby without the end of the log is
// promoted under them (trap 82). It comes when all else is judged: acknowledged jobs are lost by it, as asynchronous replication allows.
//
//   readers start ─▶ the run, with its faults ─▶ judged: each has all events
//     ─▶ a standby is cut off ─▶ jobs that only the primary has, seen by every reader ─▶ primary killed, standby promoted, servers start anew
//     ─▶ more jobs than were lost ─▶ judged: each reader has all events of the new history, and was told by name

import { ChainedReader, EventReader, problemsOf, type SeenEvent } from "../servers/event-readers.ts";
import { OPERATOR_KEY, type TenureNode, waitFor } from "../servers/index.ts";
import type { JobsStage } from "./jobs-stage.ts";

const LOST_JOBS = 5;
const LATER_JOBS = 12;
const PAGE_EVENTS = 1_000;
const SETTLE_MS_MAX = 120_000;
/** Where the run has failed already: what readers have by then is judged. */
const FAILED_SETTLE_MS_MAX = 5_000;

export interface ReaderCounts {
  readonly readers: number;
  /** Events that they have in the end, together. */
  readonly events: number;
  /** Readers that were notified of a rewritten history. */
  readonly rewritten: number;
}

export class Readers {
  readonly #stage: JobsStage;
  readonly #readers: readonly (EventReader | ChainedReader)[];

  constructor(stage: JobsStage) {
    const { urls, key } = stage;
    this.#stage = stage;
    this.#readers = [
      new EventReader({ name: "events()", urls, key }),
      new EventReader({ name: "events() of results", urls, key, types: ["build:completed", "build:submitted"] }),
      new ChainedReader(urls, key),
    ];
  }

  get counts(): ReaderCounts {
    return {
      readers: this.#readers.length,
      events: this.#readers.reduce((sum, { seen }) => sum + seen.length, 0),
      rewritten: this.#readers.filter(({ rewrites }) => rewrites.length > 0).length,
    };
  }

  /** What one of them has passed over, or has of another history. */
  async judged(hasFailed = false): Promise<string[]> {
    const history = await this.#history();
    const limitMs = hasFailed ? FAILED_SETTLE_MS_MAX : SETTLE_MS_MAX;
    await waitFor("readers to have all events", () => this.#haveSeen(history), limitMs).catch(() => undefined);
    return this.#readers.flatMap((reader) => problemsOf(reader, history));
  }

  /** The last act. A run in which a reader was not affected proves nothing of it, and is failed. */
  async rewrite(): Promise<string[]> {
    const stage = this.#stage;
    await stage.promoteWithoutEnd(async () => {
      await this.#submit(LOST_JOBS);
      const history = await this.#history();
      await waitFor("readers to see what will be lost", () => this.#haveSeen(history), SETTLE_MS_MAX);
    });
    await this.#submit(LATER_JOBS);
    await waitFor("readers to be told", () => this.counts.rewritten === this.#readers.length, SETTLE_MS_MAX).catch(
      () => undefined,
    );
    const untold = this.#readers.filter(({ rewrites }) => rewrites.length === 0).map(({ name }) => name);
    const findings = await this.judged();
    return untold.length === 0
      ? findings
      : [...findings, `not told that the history was rewritten: ${untold.join(", ")}`];
  }

  async stop(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.stop()));
  }

  async #submit(count: number): Promise<void> {
    const jobs = Array.from({ length: count }, (_, at) => ({ kind: "rewrite", payload: at }));
    await this.#stage.client(SETTLE_MS_MAX).submitMany(jobs);
  }

  /** One that has ended waits for nothing. */
  #haveSeen(history: readonly SeenEvent[]): boolean {
    return this.#readers.every((reader) => {
      const { types, last, rewrites, error } = reader;
      if (error !== null) return true;
      const wanted = history.findLast(({ eventType }) => types === undefined || types.includes(eventType));
      return last >= (wanted?.sequence ?? 0) || (reader instanceof ChainedReader && rewrites.length > 0);
    });
  }

  async #history(): Promise<SeenEvent[]> {
    const { node } = await this.#stage.leader(SETTLE_MS_MAX);
    const all: SeenEvent[] = [];
    for (let page = await pageOf(node, 0); page.length > 0; page = await pageOf(node, all.length)) all.push(...page);
    return all;
  }
}

async function pageOf(node: TenureNode, after: number): Promise<readonly SeenEvent[]> {
  const path = `/api/events/since/${after}?limit=${PAGE_EVENTS}`;
  const { status, body } = await node.call<{ events: SeenEvent[] }>(path, {
    key: OPERATOR_KEY,
    limitMs: SETTLE_MS_MAX,
  });
  if (status !== 200) throw new Error(`${node.id} answered ${path} with ${JSON.stringify(body)}`);
  return body.events.map(({ sequence, eventHash, eventType }) => ({ sequence, eventHash, eventType }));
}
