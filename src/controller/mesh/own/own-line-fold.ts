// This site's own lines, as its journal has them: one for each generation, with its rings of keys and where it ended. A tenant that has
// no events of its own: it reads `controller:registered`, which is the registry's, and the authors of all events, because a recovered
// site writes in another name.
//
//   (none) ── own ring ──▶ written ── an event of another author ──▶ ended ── own ring of the next generation ──▶ written
//
// Invariants:
// - The first ring of a line is in force from its first event on; a later one from the event after the one that has it.
// - A line ends with the last event of its author, or earlier where `controller:recovered` says so, and the next one begins right after
//   it: no event is in two of them, or in none.

import type { ChainEvent } from "../../../core/events/index.ts";
import { parseJson } from "../../../core/kit/parse-json.ts";
import type { LineId, Ring, RingKey } from "../../../core/mesh/model.ts";
import type { Tenant } from "../../journal/tenant.ts";
import { EARLIER_LINES_MAX, GENERATIONS_KEPT_MAX } from "../limits.ts";

/** Of `controller:registered` of the site itself: only that has keys. */
interface OwnRegistered {
  readonly name: string;
  readonly urls: readonly string[];
  readonly line: LineId;
  readonly generation: number;
  readonly author: string;
  readonly keys: readonly RingKey[];
}

export interface OwnGeneration {
  readonly line: LineId;
  /** The sequence before its first event. */
  readonly after: number;
  /** In order, one at least; `since`: the sequence of its event. */
  readonly rings: readonly { readonly since: number; readonly ring: Ring }[];
  /** Its last event; null: it is being written. */
  readonly end: { readonly through: number; readonly hash: string | null } | null;
}

export interface OwnLines {
  readonly controller: string;
  readonly name: string;
  readonly urls: readonly string[];
  /** The last ones, in order, one at least. */
  readonly generations: readonly OwnGeneration[];
  /** Names of lines before those, for heads that peers still show; absent: there are none. */
  readonly earlier?: readonly LineId[] | undefined;
}

export class OwnLineFold implements Tenant {
  readonly name = "own-line";
  readonly eventTypes = [] as const;
  #lines: OwnLines | null = null;

  /** Null: the site has written no ring. */
  get lines(): OwnLines | null {
    return this.#lines;
  }

  apply(event: ChainEvent): void {
    this.#authored(event);
    const { eventType, entityId, payload, sequence } = event;
    if (eventType === "controller:recovered") this.#recovered(event);
    if (eventType !== "controller:registered" || !("keys" in payload)) return;
    this.#registered(entityId, payload as unknown as OwnRegistered, sequence);
  }

  #registered(controller: string, payload: OwnRegistered, since: number): void {
    const { name, urls, line, generation, author, keys } = payload;
    const known = this.#lines?.generations ?? [];
    const last = known.at(-1);
    const ring = { controller, generation, author, keys };
    const isSame = last?.line === line;
    const rings = [...(isSame ? last.rings : []), { since, ring }];
    const after = (isSame ? last.after : last?.end?.through) ?? 0;
    const generations = [...(isSame ? known.slice(0, -1) : known), { line, after, rings, end: null }];
    const earlier = [
      ...(this.#lines?.earlier ?? []),
      ...generations.slice(0, -GENERATIONS_KEPT_MAX).map((one) => one.line),
    ].slice(-EARLIER_LINES_MAX);
    const kept = { controller, name, urls, generations: generations.slice(-GENERATIONS_KEPT_MAX) };
    this.#lines = earlier.length === 0 ? kept : { ...kept, earlier };
  }

  #authored({ sourceControllerId, sequence, previousHash }: ChainEvent): void {
    const last = this.#lines?.generations.at(-1);
    if (last === undefined || last.end !== null || ringOf(last).author === sourceControllerId) return;
    const ended = { ...last, end: { through: sequence - 1, hash: previousHash } };
    this.#lines = { ...this.#lines!, generations: [...this.#lines!.generations.slice(0, -1), ended] };
  }

  /** It says where the line before has ended: what was written since, in the name of its author, is of the next one. */
  #recovered({ payload, entityId }: ChainEvent): void {
    const own = this.#lines;
    const last = own?.generations.at(-1);
    if (own === null || last === undefined || last.end === null) return;
    const { line, through, hash } = payload;
    if (last.line !== line || own.controller !== entityId) return;
    const ended = { ...last, end: { through: through as number, hash: hash as string | null } };
    this.#lines = { ...own, generations: [...own.generations.slice(0, -1), ended] };
  }

  /** Null: there is no ring, and whoever reads this state need not know of it. */
  snapshot(): string | null {
    return this.#lines === null ? null : JSON.stringify(this.#lines);
  }

  restore(text: string | null): void {
    this.#lines = text === null ? null : (parseJson(text) as OwnLines);
  }
}

/** In force for what is written next. */
export function ringOf({ rings }: OwnGeneration): Ring {
  return rings.at(-1)!.ring;
}

/** Whose signatures count for a page after this sequence. */
export function ringAt({ rings }: OwnGeneration, after: number): Ring {
  return rings.findLast(({ since }, at) => at === 0 || since <= after)!.ring;
}

/** The first change of rings after this sequence, which ends its page; null: there is none. */
export function ringChangeAfter({ rings }: OwnGeneration, after: number): number | null {
  return rings.find(({ since }, at) => at > 0 && since > after)?.since ?? null;
}
