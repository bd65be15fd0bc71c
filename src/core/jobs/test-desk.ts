// A leader's desk for tests: decides, seals (without hashes) and proposes, with ids and times that can be distinguished.

import type { LeaseRef, Request, ResultAnswer, ResultCall } from "../../ports/jobs.ts";
import type { JobsBook } from "./state/book.ts";
import type { CommandOf, Decision, JobsAnswers, JobsCommandKind } from "./commands.ts";
import { decide } from "./decide/decide.ts";
import type { EventDraft, JobsEvent } from "./events.ts";
import { type AgentInfo, type JobSpec, PLAIN_SPEC } from "./model.ts";

export const REQUEST: Request = { caller: "alice", idempotencyKey: null, bodyHash: "00" };

export function keyed(idempotencyKey: string, bodyHash = "00", caller = "alice"): Request {
  return { caller, idempotencyKey, bodyHash };
}

export function spec(changes: Partial<JobSpec> = {}): JobSpec {
  return {
    ...PLAIN_SPEC,
    kind: "build",
    payload: { n: 1 },
    attemptsMax: 3,
    lossesMax: 2,
    backoff: { baseMs: 1_000, maxMs: 60_000 },
    retentionMs: 86_400_000,
    ...changes,
  };
}

export function agent(name = "a1", changes: Partial<AgentInfo> = {}): AgentInfo {
  return { name, session: `${name}-s1`, kinds: ["build"], labels: {}, platform: "linux", capacity: 100, ...changes };
}

type Outcome = ResultCall["outcome"];

export class Desk {
  readonly book: JobsBook;
  readonly events: JobsEvent[] = [];
  /** Those that were asked for as such. */
  readonly jobIds = new Set<string>();
  nowMs = 1_000_000;
  /** Null: the same. */
  wallMs: number | null = null;
  skippedMs = 0;
  leaderEpoch = 1;
  random = 0;
  #ids = 0;
  #sequence: number;

  constructor(book: JobsBook, sequence = 0) {
    this.book = book;
    this.#sequence = sequence;
  }

  decide<Kind extends JobsCommandKind>(command: CommandOf<Kind>): Decision<JobsAnswers[Kind]> {
    const newId = (): string => `id-${this.leaderEpoch}-${++this.#ids}`;
    return decide<Kind>(this.book, command, {
      nowMs: this.nowMs,
      skippedMs: this.skippedMs,
      wallMs: this.wallMs ?? this.nowMs,
      leaderEpoch: this.leaderEpoch,
      newId,
      newJobId: () => {
        const id = newId();
        this.jobIds.add(id);
        return id;
      },
      // What an agent sends is hashed in the controller; here the two are the same.
      leaseHash: (leaseId) => leaseId,
      random: () => this.random,
    });
  }

  /** Decides and proposes; does not commit. */
  propose<Kind extends JobsCommandKind>(command: CommandOf<Kind>, skippedMs = 0): Decision<JobsAnswers[Kind]> {
    const decision = this.decide<Kind>(command);
    if (decision.kind !== "decided") return decision;
    const [first, ...rest] = decision.drafts;
    // As the controller does after a jump of its clock.
    const told =
      first === undefined || skippedMs === 0 ? first : { ...first, payload: { ...first.payload, skippedMs } };
    if (told !== undefined) this.book.propose([told, ...rest].map((draft) => this.#seal(draft)));
    return decision;
  }

  /** Decides, proposes and commits; throws where it is refused. */
  do<Kind extends JobsCommandKind>(command: CommandOf<Kind>): JobsAnswers[Kind] {
    const decision = this.propose<Kind>(command);
    if (decision.kind === "refused") throw new Error(`${decision.code}: ${decision.message}`);
    this.book.commit(this.book.headSequence);
    return decision.answer;
  }

  rollback(to?: number): void {
    this.book.rollback(to);
    this.#sequence = this.book.headSequence;
    this.events.length = this.events.findLastIndex(({ sequence }) => sequence <= this.#sequence) + 1;
  }

  #seal(draft: EventDraft): JobsEvent {
    // As a follower gets it: no object of the draft is shared.
    const { eventType, entityId, payload } = JSON.parse(JSON.stringify(draft)) as EventDraft;
    const sequence = ++this.#sequence;
    const event = { sequence, timestamp: draft.timestamp + sequence / 1_000_000, eventType, entityId, payload };
    const sealed: JobsEvent = { ...event, leaderEpoch: this.leaderEpoch };
    this.events.push(sealed);
    return sealed;
  }

  // ---- what tests do all the time ------------------------------------------------------------------

  submit(...specs: JobSpec[]): readonly string[] {
    return this.do<"submit">({ kind: "submit", request: REQUEST, specs }).jobIds;
  }

  lease(who: AgentInfo = agent(), max = 1, poll?: number): JobsAnswers["lease"] {
    return this.do<"lease">({ kind: "lease", agent: who, max, ttlMs: 10_000, poll });
  }

  result(session: string, lease: LeaseRef, outcome: Outcome, leaderEpoch = this.leaderEpoch): ResultAnswer {
    const { jobId, jobEpoch, leaseId } = lease;
    const results = [{ jobId, jobEpoch, leaseId, leaderEpoch, outcome }];
    return this.do<"results">({ kind: "results", session, results }).answers[0]!;
  }

  state(jobId: string): string | undefined {
    return this.book.head.job(jobId)?.state;
  }
}

export const COMPLETED: Outcome = { kind: "completed", result: { ok: true } };
export const FAILED: Outcome = { kind: "failed", error: { message: "no", detail: null }, retry: true };

/** What applying these events makes of an empty book. */
export function replayed(book: JobsBook, events: readonly JobsEvent[]): JobsBook {
  for (const event of events) book.apply(event);
  return book;
}
