// What instances and the server say to each other, as JSON bytes on the kernel's network.
// A request has a number, its answer the same one; `woken` and `lost` are told without being asked.

import type { Leader } from "../../ports/elector.ts";

export type Request =
  /** Asks for the scope, proves the hold where it is ours already, and keeps the place in the queue. */
  | { readonly kind: "ask"; readonly id: number; readonly session: string; readonly identity: string }
  | { readonly kind: "beat"; readonly id: number; readonly session: string; readonly epoch: number }
  | { readonly kind: "release"; readonly id: number; readonly session: string; readonly epoch: number }
  /** Best effort: the session is not used any more. */
  | { readonly kind: "end"; readonly session: string }
  | { readonly kind: "write"; readonly id: number; readonly epoch: number }
  | { readonly kind: "leader"; readonly id: number };

export type Answer =
  | { readonly kind: "granted"; readonly id: number; readonly epoch: number }
  | { readonly kind: "wait"; readonly id: number }
  | { readonly kind: "beaten"; readonly id: number; readonly resignRequested: boolean }
  | { readonly kind: "not-held"; readonly id: number }
  | { readonly kind: "released"; readonly id: number }
  | { readonly kind: "written"; readonly id: number }
  | { readonly kind: "stale"; readonly id: number }
  | { readonly kind: "leader"; readonly id: number; readonly leader: Leader | null };

export type Push =
  | { readonly kind: "woken"; readonly session: string }
  | { readonly kind: "lost"; readonly session: string; readonly epoch: number };

/** One piece of a connection, or (without `line`) a message that stands for itself. */
export type Frame =
  | { readonly kind: "plain"; readonly body: Request | Answer | Push }
  | { readonly kind: "data"; readonly line: string; readonly sequence: number; readonly body: Request | Answer | Push }
  | { readonly kind: "ack"; readonly line: string; readonly sequence: number }
  | { readonly kind: "reset"; readonly line: string };

export function encode(frame: Frame): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(frame));
}

export function decode(bytes: Uint8Array): Frame {
  return JSON.parse(new TextDecoder().decode(bytes)) as Frame;
}
