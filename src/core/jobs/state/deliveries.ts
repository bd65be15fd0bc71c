// How far the jobs of transactions over islands were delivered into this log: one pair, for ever. It outlives the jobs, their retention and
// every leader, because what is delivered may be repeated by any of them.
//
// Invariants:
// - The pair only grows. An event that delivers at or before it does not fit, and changes nothing: whatever a leader does, each job is
//   submitted once.
// - It is of this log alone. Events of other sites are never folded into this book (core/mesh/merge), and a replay has a book of its own.

import type { JobsEvent } from "../events.ts";
import { payloadOf, type Submitted } from "../events.ts";
import type { BookState } from "./state.ts";

/** Of the record that committed the transaction, and of the operation in it. */
export interface DeliveredUpTo {
  readonly place: number;
  readonly operation: number;
}

/** Whether `one` comes after `other`. */
export function isBehind(one: DeliveredUpTo, other: DeliveredUpTo): boolean {
  return one.place > other.place || (one.place === other.place && one.operation > other.operation);
}

/** False: it was delivered before. */
export function fitsDelivered({ delivered }: BookState, event: JobsEvent): boolean {
  const { delivery } = payloadOf<Submitted>(event);
  return delivery === undefined || delivered === null || isBehind(delivery, delivered);
}

export function noteDelivered(state: BookState, event: JobsEvent): void {
  const { delivery } = payloadOf<Submitted>(event);
  if (delivery !== undefined) state.deliver({ place: delivery.place, operation: delivery.operation });
}
