// What a worker works through: a way to lead, and a resource to write to. One for each library backend, and one for each
// control that has no fence.

import type { StaleOutcome } from "./messages.ts";

export interface Increment {
  readonly worker: string;
  readonly seq: number;
  readonly lane: number;
  readonly value: number;
}

export interface Office {
  /** Campaigns, and runs `work` while leading; resolves or rejects when that is over. */
  lead(work: (term: OfficeTerm) => Promise<void>, signal: AbortSignal): Promise<void>;
  /** A write with this epoch past the gate; undefined where there is no fence to refuse it. */
  readonly stale: ((epoch: number, think: () => Promise<void>) => Promise<StaleOutcome>) | undefined;
  /** The epoch in force, as the resource says. */
  newest(): Promise<number>;
  close(): Promise<void>;
}

export interface OfficeTerm {
  readonly epoch: number;
  /** Aborts when the term is over. */
  readonly signal: AbortSignal;
  /** Whether the gate is open at this moment. */
  isOpen(): boolean;
  /** Where each lane stands. */
  read(): Promise<readonly number[]>;
  /** Sets the lane to the increment's value, whatever it was, and stores the increment, both or neither. */
  write(increment: Increment, think: () => Promise<void>): Promise<void>;
  /** Of what `write` rejected with. Refused: certainly not written. */
  outcomeOf(error: unknown): "refused" | "unknown";
  /** Leaves a fenced statement running for so long. */
  busy(ms: number): Promise<void>;
}

/** Nobody knows whether an increment was written: its worker gives its term up. */
export class OutcomeUnknown extends Error {}
