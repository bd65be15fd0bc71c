// What two nodes know of each other's presence: the connection between them, dialled by either side.
//
//   none ──dial: both listen, both ways open──▶ established     (peerSeen on both ends)
//   established ──process dies, link open──▶ none               (reset, re-dial refused: peerGone on the other)
//   established ──process dies, link cut───▶ unnoticed          (nothing; the link's heal makes it peerGone)
//   established ──reset of living processes─▶ none              (accepted: peerSeen again; refused: peerGone, then peerSeen)
//
// Invariants: peerSeen needs both processes running and both ways open at that moment; peerGone is only told to a
// life that had this connection, and never across a cut. Messages do not wait for a connection: late and early
// ones are what the receiver must bear.

import type { PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Owner, Scheduled } from "./event-heap.ts";
import type { Link } from "./link.ts";
import type { Life } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SimWire } from "./wire.ts";

const DIAL_MS = [0.1, 1] as const;
const RESET_MS = [0.05, 0.5] as const;
/** How long a full listener goes on refusing before the next dial succeeds. */
const REFUSED_MS = [5, 50] as const;

export type Redial = "accepted" | "refused";

export interface End {
  readonly name: string;
  /** The wire of the present life, once it listens. */
  wire: SimWire | undefined;
}

interface Unnoticed {
  readonly observer: End;
  readonly life: Life;
  readonly gone: PeerKey;
}

export interface ConnectionCounts {
  peerSeen: number;
  peerGone: number;
  resets: number;
}

export class Connection {
  readonly a: End;
  readonly b: End;
  /** Messages of an earlier generation were under way when the connection was reset: they are lost. */
  generation = 0;
  readonly #there: Link;
  readonly #back: Link;
  readonly #scheduler: Scheduler;
  readonly #owner: Owner;
  readonly #random: Random;
  readonly #counts: ConnectionCounts;
  #established: { a: SimWire; b: SimWire } | undefined;
  #unnoticed: Unnoticed | undefined;
  #dialling: Scheduled | undefined;

  constructor(ends: [End, End], links: [Link, Link], scheduler: Scheduler, random: Random, counts: ConnectionCounts) {
    [this.a, this.b] = ends;
    [this.#there, this.#back] = links;
    this.#scheduler = scheduler;
    this.#owner = scheduler.owner(`connection/${this.a.name}=${this.b.name}`);
    this.#random = random;
    this.#counts = counts;
  }

  get open(): boolean {
    return this.#there.open && this.#back.open;
  }

  get established(): boolean {
    return this.#established !== undefined;
  }

  /** Somebody started, resumed, or the link opened: see whether a handshake works now. */
  dial(): void {
    this.#dialAfter(DIAL_MS);
  }

  /** The link opened again. Both sides shake hands anew, or one learns that the other died meanwhile. */
  healed(): void {
    if (!this.open) return;
    if (this.#unnoticed !== undefined) this.#notice(this.#unnoticed);
    this.dial();
  }

  /** `end`'s process died or stopped listening. Silent: its machine lost power, so nobody sends a reset. */
  ended(end: End, silent: boolean): void {
    const established = this.#established;
    this.#established = undefined;
    if (established === undefined || silent) return;
    const observer = end === this.a ? this.b : this.a;
    const [gone, other] = end === this.a ? [established.a, established.b] : [established.b, established.a];
    this.#unnoticed = { observer, life: other.life, gone: gone.self };
    this.#notice(this.#unnoticed);
  }

  /** Of two living processes; false where there is no connection to reset. Refused: `dialler` gets the refusal. */
  reset(redial: Redial, dialler: string): boolean {
    const established = this.#established;
    if (established === undefined || !this.open) return false;
    this.#established = undefined;
    this.generation++;
    this.#counts.resets++;
    this.#dialling?.cancel();
    if (redial === "accepted") {
      this.#dialAfter(RESET_MS);
      return true;
    }
    const [near, far] = dialler === this.a.name ? [established.a, established.b] : [established.b, established.a];
    // This event stands for the first re-dial, so that no other one comes before the refusal.
    this.#dialling = this.#later(RESET_MS, () => {
      near.life.deliver(() => {
        this.#counts.peerGone++;
        near.handlers?.peerGone(far.self);
      });
      this.#dialAfter(REFUSED_MS);
    });
    return true;
  }

  #dialAfter(range: readonly [number, number]): void {
    if (this.#dialling?.pending === true) return;
    this.#dialling = this.#later(range, () => this.#handshake());
  }

  #handshake(): void {
    const a = this.a.wire;
    const b = this.b.wire;
    if (!this.open || a?.running !== true || b?.running !== true) return;
    this.#unnoticed = undefined;
    this.#established = { a, b };
    this.#counts.peerSeen += 2;
    this.#scheduler.trace("seen", a.self, b.self);
    this.#scheduler.narrate("net", () => `${a.self} = ${b.self} connected`);
    a.life.deliver(() => a.handlers?.peerSeen(b.self));
    b.life.deliver(() => b.handlers?.peerSeen(a.self));
  }

  #notice(unnoticed: Unnoticed): void {
    // As over TCP: the end of the stream comes after the data that was sent before it.
    const link = unnoticed.observer === this.b ? this.#there : this.#back;
    this.#later(
      RESET_MS,
      () => {
        // Cut meanwhile: the reset never arrives, and `healed` tries again.
        if (this.#unnoticed !== unnoticed || !this.open) return;
        unnoticed.life.deliver(() => this.#redial(unnoticed));
      },
      link.drainedAtMs,
    );
  }

  /** In the observer, which may have been paused since: it dials again, and only a refusal is peerGone. */
  #redial({ observer, gone }: Unnoticed): void {
    this.#unnoticed = undefined;
    const target = observer === this.a ? this.b : this.a;
    if (target.wire !== undefined) {
      this.dial();
      return;
    }
    this.#counts.peerGone++;
    this.#scheduler.trace("gone", observer.name, gone);
    this.#scheduler.narrate("net", () => `${observer.name} learns that ${gone} is gone`);
    observer.wire?.handlers?.peerGone(gone);
  }

  #later(range: readonly [number, number], fire: () => void, notBeforeMs = 0): Scheduled {
    const afterMs = this.#random.between(range[0], range[1]) + this.#there.sampleLatencyMs();
    return this.#scheduler.schedule(Math.max(this.#scheduler.nowMs, notBeforeMs) + afterMs, this.#owner, fire);
  }
}
