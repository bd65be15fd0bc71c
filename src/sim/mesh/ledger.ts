// What is true in a simulated mesh: which events each site has committed, with their bytes; what clients were answered; and what each node
// of each site has of the others. Nodes report, and nothing is taken back.

import type { World } from "../kernel/index.ts";

const textDecoder = new TextDecoder("utf-8", { fatal: true });

export interface OwnEvent {
  readonly sequence: number;
  /** The canonical text. */
  readonly text: string;
  readonly eventType: string;
  readonly entityId: string;
  readonly timestamp: number;
  /** When the first node applied it. */
  readonly atMs: number;
}

export class Ledger {
  readonly #world: World;
  readonly #events = new Map<string, OwnEvent[]>();
  readonly #acknowledged: { readonly site: string; readonly jobId: string }[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  get events(): number {
    return [...this.#events.values()].reduce((sum, { length }) => sum + length, 0);
  }

  get acknowledgedCount(): number {
    return this.#acknowledged.length;
  }

  /** The committed events of a site, by sequence. */
  of(site: string): readonly OwnEvent[] {
    return this.#events.get(site) ?? [];
  }

  /** A node applies this event of its own site. */
  own(site: string, node: string, position: number, data: Uint8Array): void {
    const events = this.#events.get(site) ?? [];
    this.#events.set(site, events);
    const text = textDecoder.decode(data);
    const known = events[position - 1];
    if (known !== undefined) {
      if (known.text !== text) this.#wrong(node, `applied another event ${position} than the others of its site`);
      return;
    }
    if (position !== events.length + 1)
      return this.#wrong(node, `applied ${position} of ${site} after ${events.length}`);
    const { eventType, entityId, timestamp } = JSON.parse(text) as OwnEvent;
    events.push({ sequence: position, text, eventType, entityId, timestamp, atMs: this.#world.nowMs });
  }

  /** A client was answered: these jobs exist. */
  acknowledged(site: string, jobIds: readonly string[]): void {
    for (const jobId of jobIds) this.#acknowledged.push({ site, jobId });
  }

  /** Null: what clients were answered is committed. */
  lost(): string | null {
    for (const { site, jobId } of this.#acknowledged) {
      const isThere = this.of(site).some(
        ({ eventType, entityId }) => eventType === "build:submitted" && entityId === jobId,
      );
      if (!isThere) return `${site} acknowledged the job ${jobId} and has not committed it`;
    }
    return null;
  }

  #wrong(node: string, what: string): void {
    this.#world.report(node, new Error(`${node} ${what}`));
  }
}
