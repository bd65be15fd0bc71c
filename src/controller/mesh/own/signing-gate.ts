// The gate of signing (core/mesh/gate), on one node: asks the other members, compares what peers show of the own line, and writes into the
// journal what has to outlive the process.
//
//   `controller:gated {through, hash, frontier}`   this leader's site was started, and nobody was compared yet: what follows `through` may be a
//                                                  second history. The first one counts, until
//   `controller:resumed {by, renewed}`             every peer was compared, or an operator says so; `renewed`: the line ends at `through`, and
//                                                  the next generation begins with what was written since, as another author
//
// Invariants:
// - A process signs when it has compared, or when a member says so that has run since somebody did: never because of what is on its disk.
// - `through` was written before the disk went back, if it did: peers have it, or get it as a part of the same history.
// - The author of a new line is one that no disk of this site has had: its line's name is new too.

import { assert, assertNever } from "../../../core/kit/assert.ts";
import type { SigningHeld } from "../../../core/health/index.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { EventDraft, EventPayload } from "../../../core/events/index.ts";
import type { ChainPoint } from "../../../core/archive/index.ts";
import { type Finding, findingOf, Gate, type GateStanding, type OwnPart } from "../../../core/mesh/gate/index.ts";
import type { LineId } from "../../../core/mesh/model.ts";
import { controllerOf, readNote, toBase64 } from "../../../core/mesh/proof/index.ts";
import type { OwnPlace, Registry, RegistryEventType, Renewal, SiteResumed } from "../../../core/mesh/registry/index.ts";
import type { Clock, Timer } from "../../../ports/clock.ts";
import type { Request } from "../../../ports/jobs.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { GateView } from "../../../ports/mesh/lines.ts";
import type { JournalReign } from "../../journal/journal-reign.ts";
import type { JournalService } from "../../journal/service.ts";
import { checkLeaderEpoch } from "../../leadership/leader-epoch.ts";
import type { Door } from "../../leadership/reign.ts";
import { AUTHOR_DIGITS, GATE_ASK_MS } from "../limits.ts";
import { renewedDraft } from "./succession.ts";

export interface SigningGateOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly newId: () => string;
  readonly journal: Pick<JournalService, "serve" | "change">;
  readonly registry: Registry;
  /** The own line, as this node has it. */
  readonly own: () => {
    readonly partAt: (line: LineId, size: number) => Promise<OwnPart | null>;
    readonly hasSigned: (line: LineId, note: string) => boolean;
  };
  /** The last event that is applied, and the tree after it. */
  readonly head: () => ChainPoint;
  /** As the log names it, whatever an operator has asked for. */
  readonly loggedAuthor: () => string;
  /** Whether this node's key is in the ring of the own line. */
  readonly canSign: () => boolean;
  readonly hasOthers: () => boolean;
  /** Whether one of the other members has run since the site was compared. */
  readonly askOthers: () => Promise<boolean>;
}

/** Nothing: what every history begins with. */
export const NO_PLACE: OwnPlace = { through: 0, hash: null, frontier: "" };

export class SigningGate {
  readonly #options: SigningGateOptions;
  readonly #gate = new Gate();
  readonly #door: Door<JournalReign>;
  readonly #sinceMs: number;
  readonly #startedMs: number;
  #timer: Timer | null = null;
  #isStopped = false;
  /** Somebody was to be compared, at some time of this process. */
  #hasWaited = false;
  #isPlaceDue = false;
  /** The place that is being written. */
  #marking: Promise<void> = Promise.resolve();
  /** The new line that is being written. */
  #renewing: Promise<void> | null = null;

  constructor(options: SigningGateOptions) {
    this.#options = options;
    this.#sinceMs = options.clock.wallMs();
    this.#startedMs = options.clock.monotonicMs();
    this.#door = options.journal.serve((reign) => {
      this.#begin(reign);
      return reign;
    });
    this.#askLater();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** What the other members are answered. */
  get isCompared(): boolean {
    return this.#gate.isOpen;
  }

  /** This leader began without a line, and not from nothing: the place is written with the first ring. */
  get isPlaceDue(): boolean {
    return this.#isPlaceDue;
  }

  /** Why nothing is signed; null: it is. */
  get held(): string | null {
    const standing = this.#standing();
    return standing.kind === "open" ? null : textOf(standing);
  }

  /** For this node's alerts: only a leader has links, and knows whom it has compared. */
  alarm(): SigningHeld | null {
    const standing = this.#standing();
    if (standing.kind === "open" || this.#door.current === null) return null;
    const heldMs = this.#options.clock.monotonicMs() - this.#startedMs;
    return { why: textOf(standing), isBehind: standing.kind === "behind", heldMs };
  }

  view(): GateView {
    const standing = this.#standing();
    const shown = { state: standing.kind, sinceMs: this.#sinceMs, missing: [], why: null } as const;
    switch (standing.kind) {
      case "open":
        return shown;
      case "comparing":
        return { ...shown, missing: standing.missing, why: textOf(standing) };
      case "behind":
        return { ...shown, why: textOf(standing) };
      default:
        return assertNever(standing, "where the gate is");
    }
  }

  /** Heads that a peer has: all of them, or those that are new since. */
  heard(peer: string, notes: readonly string[], isAll: boolean): void {
    if (this.#gate.isOpen) return;
    void this.#compare(peer, notes, isAll).catch((error: unknown) => this.#failed(error));
  }

  /** BAD_REQUEST: the line can't go on from this disk. */
  async resume(request: Request, isNewLine: boolean): Promise<GateView> {
    const reign = this.#door.serving();
    checkLeaderEpoch(request.leaderEpoch, reign.epoch);
    const standing = this.#standing();
    if (isNewLine) {
      this.#renewing ??= this.#renew(reign, request.caller, standing).finally(() => (this.#renewing = null));
      await this.#renewing;
    } else if (standing.kind === "behind") {
      const text = `${textOf(standing)}. The line can't go on from this disk: \`tenure mesh resume --new-line\` begins the next one.`;
      throw new TenureError("BAD_REQUEST", text, { field: "new_line" });
    } else if (standing.kind === "comparing") {
      await this.#write(reign, "controller:resumed", resumed(request.caller, null));
    }
    this.#open(`resumed by ${request.caller}`, reign);
    return this.view();
  }

  #standing(): GateStanding {
    return this.#gate.standing(this.#options.registry.peers());
  }

  #begin(reign: JournalReign): void {
    // Open: also where another leader of this site has compared, and ended before it wrote that.
    if (this.#gate.isOpen) return this.#resumed(reign);
    this.#mark(reign);
    // With no peers there is nobody to wait for, and it is not opened for good: the disk may be from before the first of them registered.
    if (this.#options.registry.peers().length > 0) void this.#ask();
  }

  /** Before anybody is asked, and also where there is nobody to ask: what is written meanwhile, and a crash then, must not move the place. */
  #mark(reign: JournalReign): void {
    const { registry, head } = this.#options;
    if (registry.gated !== null) return;
    const { sequence: through, hash, frontier } = head();
    if (registry.own !== null) {
      this.#marking = this.#note(reign, "controller:gated", { through, hash, frontier: toBase64(frontier) });
    } else {
      // The disk may be from before there was a line, which went on elsewhere. Where there is nothing on it, the site is a new one.
      this.#isPlaceDue = through > 0;
    }
  }

  async #compare(peer: string, notes: readonly string[], isAll: boolean): Promise<void> {
    const findings: Finding[] = [];
    for (const note of notes) {
      const finding = await this.#finding(note);
      if (finding !== null) findings.push(finding);
    }
    const before = this.#standing().kind;
    this.#gate.heard(peer, findings, isAll);
    const standing = this.#standing();
    if (standing.kind === "behind" && before !== "behind") {
      this.#markNothing();
      this.#options.logger.error({ event: "mesh-behind", peer }, `${textOf(standing)}.`);
    }
    if (standing.kind === "open" && this.#door.current !== null) this.#open("every peer has a part of it");
  }

  /** Null: of another site, or no note. */
  async #finding(note: string): Promise<Finding | null> {
    const { registry, own } = this.#options;
    const read = readNote(note);
    if (read.kind === "malformed") return null;
    const { checkpoint } = read;
    const { line, size } = checkpoint;
    if (controllerOf(line) !== registry.own?.controllerId) return null;
    const { partAt, hasSigned } = own();
    return findingOf(checkpoint, await partAt(line, size), hasSigned(line, note));
  }

  #open(why: string, reign: JournalReign | null = this.#door.current): void {
    if (this.#gate.isOpen) return;
    this.#gate.open();
    this.#options.logger.info({ event: "mesh-signing" }, `this node signs the own line: ${why}`);
    if (reign !== null) this.#resumed(reign);
  }

  /** What follows is not in doubt any more; once the place is written, if it is. */
  #resumed(reign: JournalReign): void {
    void this.#marking.then(() => {
      if (this.#options.registry.gated !== null) void this.#note(reign, "controller:resumed", resumed(null, null));
    });
  }

  /** In one turn: the last word of the old author, and the first of the new one. */
  async #renew(reign: JournalReign, by: string, standing: GateStanding): Promise<void> {
    const { registry, newId, loggedAuthor, canSign } = this.#options;
    const { own, gated } = registry;
    if (own === null) throw new TenureError("BAD_REQUEST", "This site has no line yet: there is nothing to renew.");
    // Asked for twice: the first ring of the line that was asked for is not written yet.
    if ((await this.#options.own().partAt(own.line, 0))?.isEnded === true) return;
    // Whoever can't sign the old line any more can't give out what of it the peers lack either.
    const place = canSign() && isCommon(gated, standing) ? gated : NO_PLACE;
    const before = loggedAuthor();
    const author = `${before}+${newId().replaceAll("-", "").slice(0, AUTHOR_DIGITS)}`;
    const renewed: Renewal = { ...place, line: own.line, before, author };
    const last = this.#write(reign, "controller:resumed", resumed(by, renewed));
    reign.writeAs(author);
    const first = reign.write([renewedDraft(own.controllerId, renewed, newId(), reign.nowMs)], reign);
    try {
      await Promise.all([last, first]);
    } catch (error) {
      reign.writeAs(own.author);
      throw error;
    }
    // Two histories under one name would be signed otherwise.
    assert((await this.#options.own().partAt(own.line, 0))?.isEnded === true, "the old line has ended");
  }

  #write(reign: JournalReign, eventType: RegistryEventType, payload: object): Promise<void> {
    const { registry, newId } = this.#options;
    const draft: EventDraft = {
      id: newId(),
      eventType,
      entityType: "controller",
      entityId: registry.own?.controllerId ?? "",
      payload: payload as EventPayload,
      timestamp: reign.nowMs,
    };
    return reign.write([draft], reign);
  }

  /** Where it is not written, the next leader of this site writes it. */
  async #note(reign: JournalReign, eventType: RegistryEventType, payload: object): Promise<void> {
    if (this.#options.registry.own === null || reign.isOver) return;
    await this.#write(reign, eventType, payload).catch((error: unknown) => this.#failed(error));
  }

  #askLater(): void {
    const { clock } = this.#options;
    if (this.#isStopped || this.#gate.isOpen) return;
    this.#timer = clock.setTimer(clock.monotonicMs() + GATE_ASK_MS, () => {
      void this.#ask().then(() => this.#askLater());
    });
  }

  /** Where this leader has written no place: of what there is of the line, nothing is known to be common with anybody. */
  #markNothing(): void {
    const { registry } = this.#options;
    const reign = this.#door.current;
    if (reign === null || registry.own === null) return;
    this.#marking = this.#marking.then(async () => {
      if (registry.gated === null) await this.#note(reign, "controller:gated", NO_PLACE);
    });
  }

  async #ask(): Promise<void> {
    const { hasOthers, askOthers } = this.#options;
    // Whoever was missing may be evicted. A node that does not lead may not know its peers yet; and where there were none (nobody, or those
    // that had left when this disk was written), the first one is compared when it comes.
    const { kind } = this.#standing();
    if (kind !== "open") this.#hasWaited = true;
    if (this.#door.current !== null && this.#hasWaited && kind === "open")
      this.#open("no peer is left that was not compared");
    if (this.#gate.isOpen || !hasOthers()) return;
    if (await askOthers()) this.#open("another member has run since it was compared");
  }

  #failed(error: unknown): void {
    if (!TenureError.is(error)) throw error;
    this.#options.logger.warn({ event: "mesh-gate", code: error.code }, error.message);
  }
}

/**
 * Whether peers have the history up to there, or get it as a part of theirs. Not of a line that was signed already; nor where a peer has another history
 * there: this disk went on after it was restored, and its place was lost in a crash. They get all of it again then.
 */
function isCommon(place: OwnPlace | null, standing: GateStanding): place is OwnPlace {
  if (place === null || standing.kind === "open") return false;
  return standing.kind !== "behind" || standing.finding.kind !== "other" || standing.finding.size > place.through;
}

function resumed(by: string | null, renewed: Renewal | null): SiteResumed {
  return { by, renewed };
}

function textOf(standing: Exclude<GateStanding, { kind: "open" }>): string {
  if (standing.kind === "behind") {
    const { peer, finding } = standing;
    const { line, size } = finding;
    return finding.kind === "longer"
      ? `${peer} has ${size} events of ${line}, signed by this site, and this disk has ${finding.have}: it is an older copy`
      : `${peer} has another history of ${line}, signed by this site, at ${size} events: this disk is an older copy that went on by itself`;
  }
  const { missing, unclear } = standing;
  const more =
    unclear.length === 0 ? "" : ` (${unclear.join(", ")}: shows something of this site that this disk does not know)`;
  return `the site was started, and what ${missing.join(", ")} ${missing.length === 1 ? "has" : "have"} of its line is not compared yet${more}`;
}
