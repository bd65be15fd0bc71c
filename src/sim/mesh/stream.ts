// A stream between two sites over the simulated network: in order, one message under way, broken by a cut that lasts, by the death of
// either end and by whoever gives it up.
//
//   opening ──▶ open ──▶ over, at each end in its own time

import type { LinkMessage, SiteAnswer } from "../../ports/mesh/sites.ts";
import type { Boot } from "../kernel/index.ts";
import { type Carriage, type Door, type Opening, type Parcel, type Transport, unreachable } from "./transport.ts";

const LOOKS_EVERY_MS = 1_000;
/** So many looks without a message, and it is dead: heads come each second. */
const QUIET_LOOKS_MAX = 4;

export interface Dialling {
  readonly to: string;
  readonly opening: Opening;
  readonly signal: AbortSignal;
  readonly receive: (message: LinkMessage) => Promise<void>;
}

/** Until it is over at this end. */
export function dial(transport: Transport, boot: Boot, dialling: Dialling): Promise<SiteAnswer<null>> {
  return new Stream(transport, boot, dialling).open();
}

class Stream {
  readonly #transport: Transport;
  readonly #boot: Boot;
  readonly #dialling: Dialling;
  readonly #ended = Promise.withResolvers<SiteAnswer<null>>();
  /** Of the end that was dialled. */
  readonly #there = new AbortController();
  #door: Door | null = null;
  #isOver = false;
  #heard = 0;

  constructor(transport: Transport, boot: Boot, dialling: Dialling) {
    this.#transport = transport;
    this.#boot = boot;
    this.#dialling = dialling;
  }

  open(): Promise<SiteAnswer<null>> {
    const { to, opening, signal } = this.#dialling;
    const { node } = this.#boot;
    if (signal.aborted) this.#broken("given up");
    signal.addEventListener("abort", () => this.#broken("given up"), { once: true });
    this.#watch(-1, 0);
    this.#transport.carry({
      from: node,
      to,
      parcel: { kind: "opening", opening },
      isOrdered: false,
      arrived: (parcel) => {
        const door = this.#transport.door(to);
        // An opening that came twice is one connection.
        if (parcel.kind !== "opening" || door === undefined || this.#door !== null || this.#isOver) return;
        this.#serve(parcel.opening, door);
      },
      refused: () => this.#transport.after(to, 1, () => this.#broken("nobody listens")),
    });
    return this.#ended.promise;
  }

  #over(end: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#transport.at(this.#boot.node, this.#boot.isAlive, end);
    this.#hangUp();
  }

  /** The end that was dialled hears of it at once where it can, and otherwise finds out. */
  #hangUp(): void {
    const door = this.#door;
    if (door === null) return;
    const { to } = this.#dialling;
    const lateMs = this.#isConnected() ? 1 : QUIET_LOOKS_MAX * LOOKS_EVERY_MS;
    this.#transport.after(to, lateMs, () => this.#transport.at(to, door.isAlive, () => this.#there.abort()));
  }

  #isConnected(): boolean {
    const { to } = this.#dialling;
    const { node } = this.#boot;
    return this.#transport.isOpen(to, node) && this.#transport.isOpen(node, to);
  }

  #broken(why: string): void {
    this.#over(() => this.#ended.reject(unreachable(this.#dialling.to, why)));
  }

  #serve(opening: Opening, door: Door): void {
    const { to } = this.#dialling;
    this.#door = door;
    this.#heard++;
    door
      .stream(opening, this.#there.signal, (message) => this.#send(message, door))
      .then(
        (answer) => {
          if (!door.isAlive()) return;
          const parcel: Parcel = { kind: "ended", answer };
          const arrived = (back: Parcel): void => {
            if (back.kind === "ended") this.#over(() => this.#ended.resolve(back.answer));
          };
          this.#transport.carry({ ...this.#back(), parcel, arrived, refused: ignore });
        },
        (error: unknown) => {
          if (door.isAlive()) this.#transport.report(to, error);
        },
      );
  }

  #back(): Pick<Carriage, "from" | "to" | "isThere" | "isOrdered"> {
    const { node, isAlive } = this.#boot;
    return { from: this.#dialling.to, to: node, isThere: isAlive, isOrdered: true };
  }

  /** Resolves when the other end has taken it. */
  #send(message: LinkMessage, door: Door): Promise<void> {
    const { to, receive } = this.#dialling;
    const { node, isAlive } = this.#boot;
    const pages = message.kind === "page" ? 1 : 0;
    const taken = Promise.withResolvers<void>();
    let isUnderWay = true;
    const over = (end: () => void): void => {
      if (!isUnderWay) return;
      isUnderWay = false;
      if (pages > 0) this.#transport.tap.underWay(to, node, -1);
      this.#transport.at(to, door.isAlive, end);
    };
    const refused = (): void => over(() => taken.reject(unreachable(node, "the stream is over")));
    if (this.#there.signal.aborted) return Promise.reject(unreachable(node, "the stream is over"));
    if (pages > 0) this.#transport.tap.underWay(to, node, 1);
    this.#there.signal.addEventListener("abort", refused, { once: true });
    const arrived = (parcel: Parcel): void => {
      if (this.#isOver || !isAlive() || parcel.kind !== "message") return;
      this.#heard++;
      receive(parcel.message).then(
        () => this.#transport.after(node, 1, () => over(() => taken.resolve())),
        (error: unknown) => this.#broken(String(error)),
      );
    };
    this.#transport.carry({ ...this.#back(), parcel: { kind: "message", message }, arrived, refused });
    return taken.promise;
  }

  /** This end looks now and then whether the other is still there, and whether its own process is. */
  #watch(heardBefore: number, quietLooks: number): void {
    const { node, isAlive } = this.#boot;
    this.#transport.after(node, LOOKS_EVERY_MS, () => {
      if (this.#isOver) return;
      const quiet = this.#heard === heardBefore ? quietLooks + 1 : 0;
      const isReset = this.#door?.isAlive() === false && this.#isConnected();
      if (quiet >= QUIET_LOOKS_MAX || isReset || !isAlive()) return this.#broken("nobody is there any more");
      this.#watch(this.#heard, quiet);
    });
  }
}

function ignore(): void {}
