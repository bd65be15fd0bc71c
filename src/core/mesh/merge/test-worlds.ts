// For tests of the merged state: a store in memory, random worlds of sites, and an oracle that folds all events of a line in their order,
// one by one, without any of the rules that make the order of arrival unimportant.

import { canonicalJson, type EventPayload } from "../../events/index.ts";
import { seededRandom, type Random } from "../../kit/random.ts";
import type { Json } from "../../kit/json.ts";
import type { Digest } from "../../../ports/digest.ts";
import { type JobWords, type LineEvent, projectionHash, type Row, type RowKind, type RowStore } from "./index.ts";

export class MemoryRows implements RowStore {
  readonly rows = new Map<string, { readonly text: string; readonly row: Row; readonly isGone: boolean }>();
  readonly sums = new Map<string, string>();
  readonly ends = new Map<string, number>();

  get(kind: RowKind, line: string, id: string): string | null {
    return this.rows.get(`${kind} ${line} ${id}`)?.text ?? null;
  }

  set(row: Row, text: string, isGone: boolean): void {
    this.rows.set(`${row.kind} ${row.row.line} ${row.row.id}`, { text, row, isGone });
  }

  sum(line: string): string | null {
    return this.sums.get(line) ?? null;
  }

  setSum(line: string, sum: string): void {
    this.sums.set(line, sum);
  }

  ended(line: string, through: number): void {
    this.ends.set(line, Math.min(through, this.ends.get(line) ?? through));
  }

  /** Of rows that are there, without where something was forgotten before. */
  texts(): string[] {
    const live = [...this.rows.values()].filter(({ isGone }) => !isGone);
    return live.map(({ row }) => `${row.kind} ${canonicalJson(plain(row.row))}`).toSorted();
  }

  jobRows(id: string): JobWords[] {
    const rows = [...this.rows.values()].flatMap(({ row }) => (row.kind === "job" ? [row.row] : []));
    return rows.filter((row) => row.id === id);
  }

  hash(excluded: readonly string[] = []): string {
    return projectionHash([...this.sums].flatMap(([line, sum]) => (excluded.includes(line) ? [] : [sum])));
  }
}

function plain(row: object): Json {
  return { ...row, ...("gone" in row ? { gone: null } : {}) };
}

const JOB_TYPES = [
  "build:submitted",
  "build:assigned",
  "build:building",
  "build:completed",
  "build:failed",
  "build:retried",
  "build:cancelling",
  "build:cancelled",
  "build:forgotten",
] as const;
const AGENT_TYPES = ["worker:registered", "worker:offline", "worker:removed"] as const;
const OTHER_TYPES = ["controller:registered", "controller:heartbeat", "controller:expired", "queue:paused"] as const;
export const JOBS = ["j1", "j2", "j3"] as const;

/** Lines of a few sites, some with several generations; every event once, line by line. */
export function worldOf(seed: number): LineEvent[] {
  const random = seededRandom(`merge ${seed}`);
  const events: LineEvent[] = [];
  for (let line = 0; line < 1 + random.below(4); line++) {
    let sequence = 0;
    for (let generation = 1; generation <= 1 + random.below(3); generation++) {
      // A restored site goes on from before where it was.
      if (generation > 1) sequence = random.below(sequence + 1);
      for (let count = random.below(12); count > 0; count--) {
        sequence++;
        events.push(eventOf(random, { line: `s${line}.0123`, generation, sequence }));
      }
    }
  }
  return events;
}

function eventOf(random: Random, at: { line: string; generation: number; sequence: number }): LineEvent {
  const [types, entityId] = random.pick([
    [JOB_TYPES, random.pick(JOBS)],
    [JOB_TYPES, random.pick(JOBS)],
    [AGENT_TYPES, random.pick(["a1", "a2"])],
    [OTHER_TYPES, random.pick(["s0", "s1"])],
  ] as const);
  const eventType = random.pick<`${string}:${string}`>(types);
  const id = `${at.line}-${at.generation}-${at.sequence}`;
  // Few different times: the id decides often.
  const timestamp = 1_000 + random.below(4);
  return lineEvent(at, { id, eventType, entityId, timestamp, payload: payloadOf(random) });
}

/** Some fields as they should be, some missing, some of another type. */
function payloadOf(random: Random): EventPayload {
  const odd = (value: Json): Json => (random.chance(0.2) ? random.pick<Json>([null, 7, "x", [], {}, -1.5]) : value);
  const spec = odd({ kind: odd("build"), queue: odd(random.pick(["q1", "q2"])), labels: odd({ b: "2", a: odd("1") }) });
  return {
    spec,
    by: odd("ann"),
    ...(random.chance(0.2) ? { origin: odd({ ownerEpoch: odd(1 + random.below(3)) }) } : {}),
    ...(random.chance(0.2) ? { job: odd({ spec, submittedAtMs: odd(900), submittedBy: odd("bob") }) } : {}),
    agent: odd(random.pick(["a1", "a2"])),
    attempt: odd(1 + random.below(3)),
    error: odd({ message: odd("no such file") }),
    kinds: odd(["build", odd("test")]),
    capacity: odd(2),
    draining: odd(random.chance(0.5)),
    name: odd("Site"),
    urls: odd(["https://one:1", odd("https://two:2")]),
  };
}

export function lineEvent(
  { line, generation, sequence }: { line: string; generation: number; sequence: number },
  event: Omit<LineEvent["event"], "sequence">,
): LineEvent {
  return { line, generation, event: { ...event, sequence } };
}

/** Some of the events several times, all in any order. */
export function disordered(events: readonly LineEvent[], random: Random): LineEvent[] {
  const many = events.flatMap((event) =>
    Array.from({ length: random.chance(0.3) ? 2 + random.below(2) : 1 }, () => event),
  );
  for (let at = many.length - 1; at > 0; at--) {
    const other = random.below(at + 1);
    [many[at], many[other]] = [many[other]!, many[at]!];
  }
  return many;
}

/** The last event of each subject that a row's values come from: found by going through the history, nothing else. */
export interface OracleJob {
  readonly line: string;
  readonly id: string;
  spec: LineEvent | null;
  state: LineEvent | null;
  run: LineEvent | null;
}

export function oracleJobs(events: readonly LineEvent[]): OracleJob[] {
  const jobs = new Map<string, OracleJob>();
  const inOrder = events.toSorted((a, b) => a.generation - b.generation || a.event.sequence - b.event.sequence);
  for (const said of inOrder) {
    const { eventType, entityId: id, payload } = said.event;
    if (!eventType.startsWith("build:")) continue;
    const key = `${said.line} ${id}`;
    if (eventType === "build:forgotten") jobs.delete(key);
    else {
      const job = jobs.get(key) ?? { line: said.line, id, spec: null, state: null, run: null };
      jobs.set(key, job);
      job.state = said;
      if (eventType === "build:assigned") job.run = said;
      const { job: restored } = payload as { job?: { spec?: unknown } | null };
      const isRestored = eventType === "build:retried" && restored?.spec !== undefined;
      if (eventType === "build:submitted" || isRestored) job.spec = said;
    }
  }
  return [...jobs.values()];
}

/** The sum of the texts' hashes, by arithmetic of another kind. */
export function oracleHash(texts: readonly string[], digest: Pick<Digest, "sha256Hex">): string {
  let sum = 0n;
  for (const text of texts) {
    const blank = text.indexOf(" ");
    sum += BigInt(`0x${digest.sha256Hex(`tenure:mesh-row:v1\n${text.slice(0, blank)}\n${text.slice(blank + 1)}`)}`);
  }
  return (sum % 2n ** 256n).toString(16).padStart(64, "0");
}
