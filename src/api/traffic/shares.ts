// What each caller takes of a node at this moment: connections, requests, streams, bytes of answers that wait to be read, requests that are held. One
// caller never gets all of what there is, so that the others are served whatever it does. Callers are distinguished by key or
// certificate; those that nobody knows, by address. Invariant: whoever takes gives back once, and an idle caller costs nothing.

import { Refusal } from "../refusal.ts";

type Kind = "connections" | "requests" | "streams" | "bytes" | "held";

const SHOWN: Readonly<Record<Kind, string>> = {
  connections: "connections are open",
  requests: "requests are being answered",
  streams: "streams of events and logs are open",
  bytes: "bytes of answers wait to be read",
  held: "requests that came too early are held",
};

export class Shares {
  readonly #maxima: Readonly<Record<Kind, number>>;
  readonly #taken = new Map<string, Record<Kind, number>>();

  constructor(maxima: Readonly<Record<Kind, number>>) {
    this.#maxima = maxima;
  }

  /** Throws OVERLOADED where the caller has its share already. */
  take(caller: string, kind: Kind): void {
    this.check(caller, kind);
    this.add(caller, kind, 1);
  }

  isFull(caller: string, kind: Kind): boolean {
    return (this.#taken.get(caller)?.[kind] ?? 0) >= this.#maxima[kind];
  }

  check(caller: string, kind: Kind): void {
    if (!this.isFull(caller, kind)) return;
    const max = this.#maxima[kind];
    throw new Refusal(
      "OVERLOADED",
      `${max} ${SHOWN[kind]} here for ${caller}, which is the share of one caller. Wait for some of them to end, or ask another node.`,
    );
  }

  /** `count` is negative for what is given back. */
  add(caller: string, kind: Kind, count: number): void {
    const taken = this.#taken.get(caller) ?? { connections: 0, requests: 0, streams: 0, bytes: 0, held: 0 };
    taken[kind] += count;
    if (Object.values(taken).every((one) => one === 0)) this.#taken.delete(caller);
    else this.#taken.set(caller, taken);
  }
}
