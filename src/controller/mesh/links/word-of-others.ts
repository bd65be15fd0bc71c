// What other sites' events mean to this site's registry. A site that is registered with another one is vouched for by it: its first ring is pinned
// here too, as an own event. A fork that another site has proven is verified here, and becomes an own event as well. Both are written before the
// page that says so is received: a page that was received has been acted on, whatever happened to the leader in between. That a site has left, or is
// back, is said by its own line alone.
//
// Invariants: the first ring that is pinned for a line stays, whoever says what; the next one, and one before it, have no other keys; nobody vouches for this site itself; nothing is believed of
// evidence but what verifyEvidence finds under the ring that is in force here.

import type { EventDraft, EventPayload } from "../../../core/events/index.ts";
import type { LineId, LineState, Ring } from "../../../core/mesh/model.ts";
import {
  type CheckedEvent,
  controllerOf,
  type Evidence,
  lineIdOf,
  type ProofTools,
  ringHashOf,
  ringProblem,
  type Stub,
  verifyEvidence,
} from "../../../core/mesh/proof/index.ts";
import { LINES_PER_SITE_MAX, SITES_MAX } from "../../../core/mesh/registry/limits.ts";
import {
  decidePresence,
  earlierLines,
  isVouched,
  type KnownSite,
  type PinnedLine,
  type Registry,
  type RegistryEventType,
  type SiteRegistered,
  unknownOf,
} from "../../../core/mesh/registry/index.ts";
import type { Moment } from "../../journal/journal-reign.ts";
import type { JournalService } from "../../journal/service.ts";
import { giveWay } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import {
  EVIDENCE_WAITING_LENGTH_MAX,
  EVIDENCE_WAITING_MAX,
  EVIDENCE_WAITING_PER_LINE_MAX,
  OWN_URLS_MAX,
  VOUCHED_EMPTY_LINES_MAX,
  VOUCHED_NAME_LENGTH_MAX,
  VOUCHED_PER_LINE_MAX,
  VOUCHED_URL_LENGTH_MAX,
} from "../limits.ts";
import { Slice } from "../../slice.ts";

export interface WordOfOthersOptions {
  readonly clock: Clock;
  readonly journal: Pick<JournalService, "change">;
  readonly registry: Registry;
  readonly tools: ProofTools;
  readonly stateOf: (line: LineId) => LineState | null;
}

/** As much of an event as is read here. */
export interface SaidEvent {
  readonly kind: "event";
  readonly event: Pick<CheckedEvent["event"], "eventType" | "entityId" | "payload" | "sequence">;
}

/** A draft without its time and id. */
interface Word {
  readonly eventType: RegistryEventType;
  readonly entityId: string;
  readonly payload: EventPayload;
}

export class WordOfOthers {
  readonly #options: WordOfOthersOptions;
  /** Evidence that can't be verified yet, with the line in which it came, in the order in which it came. */
  #waiting: readonly { readonly from: LineId; readonly evidence: Evidence }[] = [];

  constructor(options: WordOfOthersOptions) {
    this.#options = options;
  }

  /** Resolves when everything that follows from these events of a line is written. */
  async take(line: LineId, events: readonly (SaidEvent | Stub)[]): Promise<void> {
    const words = [...this.#provenNow(line), ...(await this.#wordsOf(line, events))];
    if (words.length === 0 || this.#news(line, words).length === 0) return;
    // Once more in the turn of the decision: another page may have said the same.
    await this.#options.journal.change((moment) => this.#news(line, words).map((word) => draftOf(moment, word)));
  }

  /** A page may be full of them, and evidence costs two signatures each. */
  async #wordsOf(line: LineId, events: readonly (SaidEvent | Stub)[]): Promise<readonly Word[]> {
    const { clock } = this.#options;
    const words: Word[] = [];
    let slice = new Slice(clock);
    for (const one of events) {
      if (one.kind === "event") words.push(...this.#wordsIn(line, one));
      if (!slice.isOver) continue;
      await giveWay(clock);
      slice = new Slice(clock);
    }
    return words;
  }

  #news(line: LineId, words: readonly Word[]): readonly Word[] {
    const { registry } = this.#options;
    const once = new Map<string, Word>();
    /** Lines of each site that are said here. */
    const said = new Map<string, readonly PinnedLine[]>();
    let room = Math.min(SITES_MAX - registry.size, VOUCHED_PER_LINE_MAX - this.#vouchedThrough(line));
    for (const word of words) {
      if (isPresence(word.eventType)) {
        // Of several the last counts, whatever was before it.
        once.set("presence", word);
        continue;
      }
      const before = said.get(word.entityId) ?? [];
      if (!this.#isNew(word, before)) continue;
      const name = `${word.eventType} ${word.payload["line"] as LineId}`;
      if (once.has(name)) continue;
      const isMore = word.eventType === "controller:registered" && registry.site(word.entityId) === undefined;
      if (isMore && room-- <= 0) continue;
      once.set(name, word);
      if (word.eventType === "controller:registered" && word.payload["isOlder"] !== true)
        said.set(word.entityId, [...before, ...linesOf(word)]);
    }
    const presence = once.get("presence");
    if (presence !== undefined && !this.#isNew(presence, [])) once.delete("presence");
    return [...once.values()];
  }

  /** `before`: of the same site, said before it in the same page. */
  #isNew(word: Word, before: readonly PinnedLine[]): boolean {
    const { registry, tools } = this.#options;
    const { eventType, entityId, payload } = word;
    if (isPresence(eventType)) {
      const said = payload as { readonly line: LineId; readonly sequence: number };
      return decidePresence(registry, entityId, { ...said, hasLeft: eventType === "controller:left" }).kind === "write";
    }
    if (eventType === "controller:registered") {
      const said = linesOf(word);
      if (payload["isOlder"] === true) return this.#mayPrecede(registry.site(entityId), said.at(-1)!);
      return this.#mayFollow(entityId, said, before);
    }
    const { line, ring } = payload["evidence"] as Evidence;
    const inForce = this.#ringOf(line);
    // Its signatures were verified under this ring, some turns ago.
    return registry.forkOf(line) === undefined && inForce !== null && ringHashOf(inForce, tools.digest) === ring;
  }

  /** A fork that was proven here. */
  async forked(evidence: Evidence): Promise<void> {
    const { journal, registry } = this.#options;
    if (registry.forkOf(evidence.line) !== undefined) return;
    await journal.change((moment) =>
      registry.forkOf(evidence.line) === undefined ? [draftOf(moment, forkOf(evidence))] : [],
    );
  }

  #wordsIn(line: LineId, { event }: SaidEvent): readonly Word[] {
    const { eventType, payload } = event;
    if (eventType === "controller:registered") return this.#vouched(line, event.entityId, payload);
    if (eventType === "controller:forked") return this.#proven(line, payload);
    // Of itself: what it says of another site is that site's to say.
    if (isPresence(eventType) && event.entityId === controllerOf(line)) {
      return [{ eventType, entityId: event.entityId, payload: { line, sequence: event.sequence } }];
    }
    return [];
  }

  #vouched(line: LineId, id: string, payload: EventPayload): readonly Word[] {
    const { registry, tools } = this.#options;
    if (line.startsWith(`${id}.`) || registry.own?.controllerId === id) return [];
    const known = registry.site(id);
    const { url, name, urls = [], version = null, line: named, ring } = payload;
    if (ringProblem(ring) !== null) return [];
    const first = ring as unknown as Ring;
    if (first.controller !== id || lineIdOf(first, tools.digest) !== named) return [];
    const earlier = earlierLines(payload["earlier"] ?? [], first, tools.digest);
    if (earlier === null) return [];
    // The state of every node, and of every site after this one: no more, and nothing else, than a site that registers here may say.
    if (!isText(url, VOUCHED_URL_LENGTH_MAX) || !isText(name, VOUCHED_NAME_LENGTH_MAX)) return [];
    if (version !== null && !isText(version, VOUCHED_NAME_LENGTH_MAX)) return [];
    if (!Array.isArray(urls) || urls.length > OWN_URLS_MAX) return [];
    if (!urls.every((one) => isText(one, VOUCHED_URL_LENGTH_MAX))) return [];
    // One that an operator has approved before it registered is not known yet.
    const before = known !== undefined && known.registeredAtMs > 0 ? known : null;
    const said = { url, name, urls, version, metadata: before?.metadata ?? { vouchedBy: line } };
    // A site that has registered here itself is one that this site is compared with: it stays that, and says itself who and where it is.
    const site = before === null || isVouched(before) ? said : ownWordOf(before);
    const newest = { ...site, line: named, ring, ...unknownOf(earlier, known, known?.lines.at(-1)) };
    const older = [...earlier, { line: named, ring: first }].flatMap((one) =>
      this.#mayPrecede(known, one) ? [{ ...site, ...one, isOlder: true }] : [],
    );
    return [newest, ...older].map((word) => ({
      eventType: "controller:registered",
      entityId: id,
      payload: word as unknown as EventPayload,
    }));
  }

  /**
   * Whether this may be the first ring of a generation before one that is known here: where the site was met in its newest line, and its disk does not
   * have the line before. With keys of the line that follows alone, as what follows one: whoever vouches for it can't speak for the site.
   */
  #mayPrecede(known: KnownSite | undefined, { line, ring }: PinnedLine): boolean {
    const { stateOf } = this.#options;
    const lines = known?.lines ?? [];
    const following = lines.find((one) => one.ring.generation > ring.generation);
    if (following === undefined || lines.some((one) => one.line === line) || lines.length >= LINES_PER_SITE_MAX)
      return false;
    const empty = lines.filter((one) => one !== lines.at(-1) && stateOf(one.line) === null).length;
    return empty < VOUCHED_EMPTY_LINES_MAX && hasNoOtherKeys(ring, following.ring);
  }

  /**
   * Whether this may be the first ring of a site that is known here: of its next generation, with no key but those that are in force for it. So
   * whoever vouches for it can't speak for the site; a site with other keys is approved by an operator, and then it is that ring and no other.
   */
  #mayFollow(id: string, said: readonly PinnedLine[], before: readonly PinnedLine[]): boolean {
    const { registry, tools } = this.#options;
    const { approvedRing = null, lines: pinned = [] } = registry.site(id) ?? {};
    const lines = [...pinned, ...before];
    const isKnown = ({ line }: PinnedLine): boolean => lines.some((one) => one.line === line);
    const { ring, line } = said.at(-1)!;
    // Also where an operator has approved it since: two sites would tell each other for ever.
    if (isKnown({ ring, line })) return false;
    // All of them are pinned with it: each is looked at, those too that another page has made old since this one was read.
    const unknown = said.filter((one) => !isKnown(one));
    // An approved ring that is pinned has come; what follows it is as after any other.
    const isAwaited =
      approvedRing !== null && !lines.some((one) => ringHashOf(one.ring, tools.digest) === approvedRing);
    if (!isAwaited) return lines.length === 0 || (this.#hasRoom(lines, unknown) && this.#doFollow(lines, unknown));
    if (ringHashOf(ring, tools.digest) !== approvedRing) return false;
    if (lines.length > 0 && !this.#hasRoom([], unknown)) return false;
    // The hash says nothing of the lines before it.
    return unknown.every((one) => hasNoOtherKeys(one.ring, ring)) || this.#doFollow(lines, unknown);
  }

  /** The last lines of a site are kept: those of which nothing comes, because somebody has made them up, push out none of the others. */
  #hasRoom(lines: readonly PinnedLine[], next: readonly PinnedLine[]): boolean {
    const { stateOf } = this.#options;
    const empty = lines.length - 1 - lines.findLastIndex(({ line }) => stateOf(line) !== null);
    return empty + next.length <= VOUCHED_EMPTY_LINES_MAX;
  }

  #doFollow(lines: readonly PinnedLine[], next: readonly PinnedLine[]): boolean {
    const { registry, stateOf } = this.#options;
    const newest = lines.at(-1);
    if (newest === undefined || registry.forkOf(newest.line) !== undefined) return false;
    const rings = [stateOf(newest.line)?.ring ?? newest.ring, ...next.map((one) => one.ring)];
    return rings.every((one, at) => at === 0 || isNextOf(rings[at - 1]!, one));
  }

  /**
   * How many sites are known here by the word of this line's site, or of sites that are themselves known by it alone: whoever vouches for
   * many that vouch in turn has one share.
   */
  #vouchedThrough(line: LineId): number {
    const first = this.#firstOf(line);
    const { registry } = this.#options;
    return registry.sites().filter(({ id }) => id !== first && this.#firstOf(`${id}.`) === first).length;
  }

  /** The site that is known here by itself, at the beginning of the chain of those that vouch. */
  #firstOf(line: LineId): string {
    const { registry } = this.#options;
    let id = controllerOf(line);
    for (let steps = 0; steps < SITES_MAX; steps++) {
      const by = registry.site(id)?.metadata["vouchedBy"];
      if (typeof by !== "string") return id;
      id = controllerOf(by);
    }
    return id;
  }

  #proven(from: LineId, { evidence }: EventPayload): readonly Word[] {
    const { registry, tools } = this.#options;
    const { line, ring: signedUnder } = (evidence ?? {}) as { readonly line?: unknown; readonly ring?: unknown };
    if (typeof line !== "string" || registry.forkOf(line) !== undefined) return [];
    const ring = this.#ringOf(line);
    if (ring === null || ringHashOf(ring, tools.digest) !== signedUnder) {
      this.#keep(from, evidence as Evidence);
      return [];
    }
    return verifyEvidence(evidence, ring, tools) ? [forkOf(evidence)] : [];
  }

  /**
   * Evidence comes once, and may come before the line's ring, or its next one, is known here: it waits for the line's pages. In memory: the next
   * leader does not have it, and finds the fork as anybody does, by heads.
   */
  #keep(from: LineId, evidence: Evidence): void {
    if (JSON.stringify(evidence).length > EVIDENCE_WAITING_LENGTH_MAX) return;
    if (this.#waiting.filter((one) => one.from === from).length >= EVIDENCE_WAITING_PER_LINE_MAX) return;
    this.#waiting = [...this.#waiting, { from, evidence }].slice(-EVIDENCE_WAITING_MAX);
  }

  /** What waited for the ring of this line. It is forgotten when the fork is known, and not before: to write it may fail. */
  #provenNow(line: LineId): readonly Word[] {
    const about = this.#waiting.filter(({ evidence }) => evidence.line === line);
    if (about.length === 0) return [];
    this.#waiting = this.#waiting.filter((one) => !about.includes(one));
    return about.flatMap(({ from, evidence }) => {
      const words = this.#proven(from, { evidence });
      if (words.length > 0) this.#keep(from, evidence);
      return words;
    });
  }

  /** In force for the line; the pinned one where no page of it has come yet: evidence comes once. */
  #ringOf(line: LineId): Ring | null {
    const { registry, stateOf } = this.#options;
    const state = stateOf(line);
    if (state !== null) return state.ring;
    const { own } = registry;
    // Who has forked is the one that has to act: it must hear of it as everybody does.
    if (own?.line === line) {
      const { controllerId: controller, generation, author, keys } = own;
      return { controller, generation, author, keys };
    }
    return registry.site(controllerOf(line))?.lines.find((one) => one.line === line)?.ring ?? null;
  }
}

function isPresence(eventType: string): eventType is "controller:left" | "controller:joined" {
  return eventType === "controller:left" || eventType === "controller:joined";
}

function ownWordOf({ url, name, urls, version, metadata }: KnownSite) {
  return { url, name, urls, version, metadata };
}

/** Those that a registration names, the one that it is about last. */
function linesOf({ payload }: Word): readonly PinnedLine[] {
  const { line, ring, earlier = [] } = payload as unknown as SiteRegistered & PinnedLine;
  return [...earlier, { line, ring }];
}

function isNextOf(before: Ring, ring: Ring): boolean {
  return ring.generation === before.generation + 1 && hasNoOtherKeys(ring, before);
}

function hasNoOtherKeys(ring: Ring, than: Ring): boolean {
  return ring.keys.every(({ key }) => than.keys.some((one) => one.key === key));
}

function isText(value: unknown, lengthMax: number): boolean {
  return typeof value === "string" && value.length <= lengthMax;
}

function forkOf(evidence: Evidence): Word {
  const [entityId] = evidence.line.split(".");
  return { eventType: "controller:forked", entityId: entityId!, payload: { line: evidence.line, evidence } };
}

function draftOf({ newId, nowMs }: Moment, word: Word): EventDraft {
  return { ...word, id: newId(), entityType: "controller", timestamp: nowMs };
}
