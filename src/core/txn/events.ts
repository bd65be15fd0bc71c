// What happened to a transaction at one island, as the log keeps it. What it does to values and scopes is in the same record, as their own events.

import type {
  BackendHash,
  TcFence,
  TxnHeader,
  TxnOperation,
  TxnOutboxEntry,
  TxnReason,
  TxnReserved,
  TxnResult,
} from "./model.ts";

export interface TxnStagedEvent {
  readonly kind: "txn-staged";
  /** Without participants and digest: nobody knows them yet. */
  readonly header: TxnHeader;
  readonly operations: readonly TxnOperation[];
  /** When it expires. */
  readonly atMs: number;
}

export interface TxnPreparedEvent {
  readonly kind: "txn-prepared";
  readonly header: TxnHeader;
  readonly operations: readonly TxnOperation[];
  readonly reserved: TxnReserved;
  readonly fence: TcFence;
  readonly atMs: number;
}

export interface TxnDecidedEvent {
  readonly kind: "txn-decided";
  readonly header: TxnHeader;
  readonly outcome: "committed" | "rolled-back";
  readonly results: readonly TxnResult[];
  readonly outbox: readonly TxnOutboxEntry[];
  readonly reason: TxnReason | null;
  /** Null: no coordinator has asked for it. */
  readonly fence: TcFence | null;
  readonly atMs: number;
}

/** Its jobs are in the jobs' log. */
export interface TxnDeliveredEvent {
  readonly kind: "txn-delivered";
  readonly id: string;
  readonly atMs: number;
}

export interface TxnSettledEvent {
  readonly kind: "txn-settled";
  readonly id: string;
  /** At home: the participant that has reported; null: home knows that it is done here. */
  readonly by: BackendHash | null;
  readonly atMs: number;
}

export interface TxnFenceEvent {
  readonly kind: "txn-fence";
  readonly fence: TcFence;
  readonly atMs: number;
}

/** It was staged, and has expired. */
export interface TxnDroppedEvent {
  readonly kind: "txn-dropped";
  readonly id: string;
  readonly atMs: number;
}

/** Of one transaction. */
export type TxnOneEvent =
  | TxnStagedEvent
  | TxnPreparedEvent
  | TxnDecidedEvent
  | TxnDeliveredEvent
  | TxnSettledEvent
  | TxnDroppedEvent;

export type TxnEvent = TxnOneEvent | TxnFenceEvent;

/** Which transaction it is about. */
export function txnIdOf(event: TxnOneEvent): string {
  return "header" in event ? event.header.id : event.id;
}
