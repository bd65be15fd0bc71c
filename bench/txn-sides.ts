// What `txn` compares: one transaction that writes one value, or one row, at each of three places. Each client has names of its own, so that nobody waits
// for a lock, on either side; each has one transaction under way.

import { assertNever } from "../src/core/kit/assert.ts";
import type { HttpCertificate } from "./http-connection.ts";

/**
 * Of the peer: `decided` keeps a record of the decision between its phases, as whoever coordinates must; `undecided` does without, and would not know after
 * a crash what to do with what is prepared; `home` commits its own row and the record of the decision at the first server in one step, and prepares only
 * at the two others: what this product does.
 */
export const WAYS = ["decided", "undecided", "home"] as const;
export type Way = (typeof WAYS)[number];
export type SideName = "tenure" | Way;

export type Opened =
  | {
      readonly name: "tenure";
      /** Of the node that leads the coordinators. */
      readonly url: string;
      readonly certificate: HttpCertificate;
      readonly islands: readonly string[];
    }
  | { readonly name: Way; readonly urls: readonly string[] };

export interface Side {
  /** Rejects where it was not committed. `pending`: it is, and not everywhere when the client hears of it. */
  transact(client: number, n: number): Promise<"done" | "pending">;
  close(): Promise<void>;
}

export const CONTENT = "x".repeat(128);
/** Of each client, at each place. */
export const NAMES = 16;

export async function openSide(opened: Opened, clients: number): Promise<Side> {
  switch (opened.name) {
    case "tenure":
      return new (await import("./txn-tenure.ts")).TenureSide(opened, clients);
    case "decided":
    case "undecided":
    case "home":
      return (await import("./txn-postgres.ts")).PostgresSide.open(opened, clients);
    default:
      return assertNever(opened, "side");
  }
}
