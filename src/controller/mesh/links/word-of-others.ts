// What other sites' events mean to this site's registry. A site that is registered with another one is vouched for by it: its first ring is pinned
// here too, as an own event. A fork that another site has proven is verified here, and becomes an own event as well. Both are written before the
// page that says so is received: a page that was received has been acted on, whatever happened to the leader in between.
//
// Invariants: the first ring that is pinned for a line stays, whoever says what, and the next one has no other keys; nobody vouches for this site itself; nothing is believed of
// evidence but what verifyEvidence finds under the ring that is in force here.

import type { EventDraft, EventPayload } from "../../../core/events/index.ts";
import type { LineId, LineState, Ring } from "../../../core/mesh/model.ts";
import {
  type CheckedEvent,
  controllerOf,
  type Evidence,
  lineIdOf,
  type ProofTools,
  ringProblem,
  type Stub,
  verifyEvidence,
} from "../../../core/mesh/proof/index.ts";
import { SITES_MAX } from "../../../core/mesh/registry/limits.ts";
import type { Registry, RegistryEventType } from "../../../core/mesh/registry/index.ts";
import type { Moment } from "../../journal/journal-reign.ts";
import type { JournalService } from "../../journal/service.ts";
import { VOUCHED_PER_LINE_MAX } from "../limits.ts";

export interface WordOfOthersOptions {
  readonly journal: Pick<JournalService, "change">;
  readonly registry: Registry;
  readonly tools: ProofTools;
  readonly stateOf: (line: LineId) => LineState | null;
}

/** A draft without its time and id. */
interface Word {
  readonly eventType: RegistryEventType;
  readonly entityId: string;
  readonly payload: EventPayload;
}

export class WordOfOthers {
  readonly #options: WordOfOthersOptions;

  constructor(options: WordOfOthersOptions) {
    this.#options = options;
  }

  /** Resolves when everything that follows from these events of a line is written. */
  async take(line: LineId, events: readonly (CheckedEvent | Stub)[]): Promise<void> {
    const found = events.filter((one) => one.kind === "event" && this.#wordOf(line, one) !== null) as CheckedEvent[];
    if (found.length === 0) return;
    // Once more in the turn of the decision: another page may have said the same.
    await this.#options.journal.change((moment) => {
      const words = found.map((one) => this.#wordOf(line, one)).filter((word) => word !== null);
      const once = new Map(words.map((word) => [`${word.eventType} ${word.entityId}`, word]));
      return [...once.values()].map((word) => draftOf(moment, word));
    });
  }

  /** A fork that was proven here. */
  async forked(evidence: Evidence): Promise<void> {
    const { journal, registry } = this.#options;
    if (registry.forkOf(evidence.line) !== undefined) return;
    await journal.change((moment) =>
      registry.forkOf(evidence.line) === undefined ? [draftOf(moment, forkOf(evidence))] : [],
    );
  }

  #wordOf(line: LineId, { event }: CheckedEvent): Word | null {
    const { eventType, payload } = event;
    if (eventType === "controller:registered") return this.#vouched(line, event.entityId, payload);
    if (eventType === "controller:forked") return this.#proven(payload);
    return null;
  }

  #vouched(line: LineId, id: string, payload: EventPayload): Word | null {
    const { registry, tools } = this.#options;
    if (line.startsWith(`${id}.`) || registry.own?.controllerId === id) return null;
    const known = registry.site(id);
    const isFull = registry.size >= SITES_MAX || this.#vouchedBy(line) >= VOUCHED_PER_LINE_MAX;
    if (known === undefined && isFull) return null;
    const { url, name, urls = [], version = null, line: named, ring } = payload;
    if (ringProblem(ring) !== null) return null;
    const first = ring as unknown as Ring;
    if (first.controller !== id || lineIdOf(first, tools.digest) !== named) return null;
    if (!this.#mayFollow(id, first)) return null;
    if (typeof url !== "string" || typeof name !== "string") return null;
    // A site that has registered here itself is one that this site is compared with: it stays that.
    const metadata = known?.metadata ?? { vouchedBy: line };
    const word = { url, name, urls, version, line: named, ring, metadata } as EventPayload;
    return { eventType: "controller:registered", entityId: id, payload: word };
  }

  /**
   * Whether this may be the first ring of a site that is known here: of its next generation, with no key but those that are in force for it. So
   * whoever vouches for it can't speak for the site; a site with other keys is approved by an operator.
   */
  #mayFollow(id: string, ring: Ring): boolean {
    const { registry, stateOf } = this.#options;
    const newest = registry.site(id)?.lines.at(-1);
    if (newest === undefined) return true;
    const inForce = stateOf(newest.line)?.ring ?? newest.ring;
    const isNext = ring.generation === newest.ring.generation + 1 && registry.forkOf(newest.line) === undefined;
    return isNext && ring.keys.every(({ key }) => inForce.keys.some((one) => one.key === key));
  }

  /** How many sites are known here by the word of this line alone. */
  #vouchedBy(line: LineId): number {
    return this.#options.registry.sites().filter(({ metadata }) => metadata["vouchedBy"] === line).length;
  }

  #proven({ evidence }: EventPayload): Word | null {
    const { registry, tools } = this.#options;
    const line = (evidence as { readonly line?: unknown } | null)?.line;
    if (typeof line !== "string" || registry.forkOf(line) !== undefined) return null;
    const ring = this.#ringOf(line);
    if (ring === null || !verifyEvidence(evidence, ring, tools)) return null;
    return forkOf(evidence);
  }

  /** In force for the line; the pinned one where no page of it has come yet: evidence comes once. */
  #ringOf(line: LineId): Ring | null {
    const { registry, stateOf } = this.#options;
    const state = stateOf(line);
    if (state !== null) return state.ring;
    return registry.site(controllerOf(line))?.lines.find((one) => one.line === line)?.ring ?? null;
  }
}

function forkOf(evidence: Evidence): Word {
  const [entityId] = evidence.line.split(".");
  return { eventType: "controller:forked", entityId: entityId!, payload: { line: evidence.line, evidence } };
}

function draftOf({ newId, nowMs }: Moment, word: Word): EventDraft {
  return { ...word, id: newId(), entityType: "controller", timestamp: nowMs };
}
