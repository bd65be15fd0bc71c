// The registry of sites: who is registered here, and until when. What is decided (core/mesh/registry) is written to the journal; when a
// site was heard last is the leader's memory alone, on its monotonic clock.
//
// Invariants:
// - Heartbeats are not events. A site that has registered here expires by an event, once, when the leader has not heard of it for a TTL. A new leader
//   has heard of nobody, and starts every TTL anew. A site that is known by the word of others sends its heartbeats to them: it does not expire here.
// - Nothing is written before every member of the cluster is known to read it.

import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Json } from "../../core/kit/json.ts";
import type { LineState, Ring } from "../../core/mesh/model.ts";
import { lineIdOf, ringHashOf, ringProblem } from "../../core/mesh/proof/index.ts";
import {
  decideApprove,
  decideEvict,
  decideExpire,
  decideHeartbeat,
  decideJoin,
  decideLeave,
  decideRegister,
  type Decision,
  earlierLines,
  isVouched,
  type KnownSite,
  provenKey,
  type RegistryEventType,
  type ShownRing,
} from "../../core/mesh/registry/index.ts";
import type { EventDraft, EventPayload } from "../../core/events/index.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type {
  ControllerBeat,
  ControllerLease,
  Controllers,
  ControllerToRegister,
  ControllerView,
} from "../../ports/mesh/controllers.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Request } from "../../ports/jobs.ts";
import type { VerifySignature } from "../../ports/signatures.ts";
import type { JournalReign, Moment } from "../journal/journal-reign.ts";
import type { JournalService } from "../journal/service.ts";
import { checkLeaderEpoch } from "../leadership/leader-epoch.ts";
import type { ControllersFold } from "./controllers-fold.ts";
import { type OwnController, ownView } from "./own/own-view.ts";

export interface RegistryServiceOptions {
  readonly fold: ControllersFold;
  readonly journal: Pick<JournalService, "change" | "serve">;
  readonly clock: Clock;
  readonly digest: Pick<Digest, "sha256Hex">;
  readonly verify: VerifySignature;
  readonly own: OwnController;
  readonly ttlMs: number;
  readonly checkMs: number;
  /** What this site has of a line; null: nothing. */
  readonly lineState: (line: string) => LineState | null;
  /** Nodes that are not known to be of a release that reads these records: one would stop them. */
  readonly unready: () => readonly string[];
  /** A link to this site is open, whoever dialled. */
  readonly isLinked: (id: string) => boolean;
}

export class RegistryService implements Controllers {
  readonly #options: RegistryServiceOptions;
  /** When this leader has heard of a site; since it leads. */
  readonly #heard = new Map<string, { readonly atMs: number; readonly wallMs: number }>();
  readonly #startedWallMs: number;
  /** Of this node's leadership, or of its start. */
  #beganMs: number;
  #timer: Timer | null = null;

  constructor(options: RegistryServiceOptions) {
    this.#options = options;
    this.#beganMs = options.clock.monotonicMs();
    this.#startedWallMs = options.clock.wallMs();
    options.journal.serve((reign) => this.#begin(reign));
  }

  close(): void {
    this.#timer?.cancel();
  }

  async register(asked: ControllerToRegister): Promise<ControllerLease> {
    const { fold } = this.#options;
    const { id, url, name, metadata } = asked;
    const {
      urls = [],
      version = null,
      line: _line,
      ring: _ring,
      proof: _proof,
      earlier: _earlier,
      vouchedBy: _vouchedBy,
      ...rest
    } = metadata;
    const registration = { id, url, name, urls, version, shown: this.#shown(asked), metadata: rest as EventPayload };
    const inForce = (line: string): Ring | null => this.#options.lineState(line)?.ring ?? null;
    return this.#heardBy(id, () => decideRegister(fold.registry, registration, inForce));
  }

  async heartbeat(beat: ControllerBeat): Promise<ControllerLease> {
    const { fold, isLinked } = this.#options;
    return this.#heardBy(beat.id, () => decideHeartbeat(fold.registry, beat, isLinked(beat.id)));
  }

  async approve(request: Request, id: string, ring: string | null): Promise<ControllerView> {
    const { fold } = this.#options;
    const approved = { by: request.caller, ring };
    await this.#change(id, "controller:approved", () => decideApprove(fold.registry, id, approved), request);
    return this.#view(fold.registry.site(id)!);
  }

  async evict(request: Request, id: string): Promise<ControllerView> {
    const { fold, lineState } = this.#options;
    const sizeOf = (line: string): number => lineState(line)?.size ?? 0;
    const decide = () => decideEvict(fold.registry, id, request.caller, sizeOf);
    await this.#change(id, "controller:evicted", decide, request);
    return this.#view(fold.registry.site(id)!);
  }

  async leave(request: Request): Promise<void> {
    const { fold, own } = this.#options;
    const decide = () => decideLeave(fold.registry, request.caller);
    await this.#change(own.controllerId, "controller:left", decide, request);
  }

  async join(request: Request): Promise<void> {
    const { fold, own } = this.#options;
    const decide = () => decideJoin(fold.registry, request.caller);
    await this.#change(own.controllerId, "controller:joined", decide, request);
  }

  list(all: boolean): readonly ControllerView[] {
    const { fold, own, clock, ttlMs } = this.#options;
    const now = { wallMs: clock.wallMs(), startedMs: this.#startedWallMs, ttlMs };
    const others = fold.registry.sites().map((site) => this.#view(site));
    return [ownView(own, fold.registry.own, now), ...others.filter(({ isActive }) => all || isActive)];
  }

  heardMsAgo(): ReadonlyMap<string, number> {
    const nowMs = this.#options.clock.monotonicMs();
    return new Map(Array.from(this.#heard, ([id, { atMs }]) => [id, nowMs - atMs]));
  }

  /** Sites that this leader has not heard of for a TTL, since it leads. */
  silent(): readonly string[] {
    const { fold, clock, ttlMs } = this.#options;
    const nowMs = clock.monotonicMs();
    const isSilent = ({ id }: KnownSite): boolean => nowMs - (this.#heard.get(id)?.atMs ?? this.#beganMs) >= ttlMs;
    return decideExpire(
      fold.registry,
      fold.registry
        .sites()
        .filter(isSilent)
        .map(({ id }) => id),
    );
  }

  #begin(reign: JournalReign): void {
    this.#heard.clear();
    this.#beganMs = this.#options.clock.monotonicMs();
    this.#timer?.cancel();
    this.#checkLater(reign);
  }

  #checkLater(reign: JournalReign): void {
    const { clock, checkMs } = this.#options;
    this.#timer = clock.setTimer(clock.monotonicMs() + checkMs, () => {
      if (reign.isOver) return;
      this.#checkLater(reign);
      // What was not written is found by the next check, of this leader or of another one.
      this.#expire().catch(() => undefined);
    });
  }

  async #expire(): Promise<void> {
    if (this.silent().length === 0) return;
    await this.#options.journal.change((moment) =>
      this.silent().map((id) => draftOf(moment, id, "controller:expired", {})),
    );
  }

  /** Writes what is decided on what is applied then, or throws why it is refused. */
  async #change(
    id: string,
    eventType: RegistryEventType,
    decide: () => Decision<object>,
    request?: Request,
  ): Promise<void> {
    await this.#options.journal.change((moment) => {
      if (request !== undefined) checkLeaderEpoch(request.leaderEpoch, moment.leaderEpoch);
      const decision = decide();
      switch (decision.kind) {
        case "refused":
          throw new TenureError(decision.code, decision.message, { field: decision.field });
        case "unchanged":
          return [];
        case "write":
          this.#checkReady();
          return [draftOf(moment, id, eventType, decision.payload)];
        default:
          return assertNever(decision, "a decision of the registry");
      }
    });
  }

  #checkReady(): void {
    const { fold, unready } = this.#options;
    // Where there is a record, every node has read one: a node that could not would have stopped.
    const missing = fold.registry.isEmpty ? unready() : [];
    if (missing.length === 0) return;
    const text = `Sites are registered only where every node can read that, and ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} of another release, or not connected since this leader started. Upgrade and start them all (one that never comes back is taken out with \`tenure member remove\`), and repeat this. Nothing was done.`;
    throw new TenureError("NOT_SUPPORTED", text);
  }

  /** The ring that a site shows, with the key that has signed its proof. BAD_REQUEST where these do not fit together. */
  #shown({ id, url, metadata }: ControllerToRegister): ShownRing | null {
    const { digest, verify, own } = this.#options;
    const { line, ring: given, proof } = metadata;
    if (line === undefined && given === undefined) return null;
    const problem = ringProblem(given);
    if (problem !== null) throw badRequest("metadata.ring", `is not a ring: ${problem}`);
    const ring = given as Ring;
    if (ring.controller !== id) throw badRequest("metadata.ring", `is of ${ring.controller}, and ${id} registers`);
    const named = lineIdOf(ring, digest);
    if (line !== undefined && line !== named) {
      throw badRequest(
        "metadata.line",
        `is not the line of this ring, which is ${named}. Send the first ring of the line`,
      );
    }
    const provenBy = proof === undefined ? null : provenKey(proof, { id, url, receiver: own.controllerId }, verify);
    const earlier = earlierLines(metadata["earlier"] ?? [], ring, digest);
    if (earlier === null)
      throw badRequest("metadata.earlier", "is not a list of the site's earlier lines, oldest first");
    return { line: named, ring, ringHash: ringHashOf(ring, digest), earlier, provenBy };
  }

  /** Heard in the turn of the decision: a check that follows before the answer must not find the site silent. */
  async #heardBy(id: string, decide: () => Decision<object>): Promise<ControllerLease> {
    const { clock, ttlMs } = this.#options;
    const wallMs = Math.floor(clock.wallMs());
    await this.#change(id, "controller:registered", () => {
      const decision = decide();
      if (decision.kind !== "refused") this.#heard.set(id, { atMs: clock.monotonicMs(), wallMs });
      return decision;
    });
    return { expiresAtMs: wallMs + ttlMs };
  }

  #view(site: KnownSite): ControllerView {
    const { fold, clock, ttlMs } = this.#options;
    const { id, url, name, urls, version, registeredAtMs } = site;
    const lastHeartbeatAtMs = this.#heard.get(id)?.wallMs ?? registeredAtMs;
    const status = fold.registry.status(site);
    const newest = site.lines.at(-1);
    const line = newest === undefined ? {} : { line: newest.line, ring: newest.ring as unknown as Json };
    return {
      id,
      url,
      name,
      registeredAtMs,
      lastHeartbeatAtMs,
      // A vouched site has no time to live here: it never is about to expire.
      expiresAtMs: (isVouched(site) ? Math.floor(clock.wallMs()) : lastHeartbeatAtMs) + ttlMs,
      isActive: registeredAtMs > 0 && (status === "registered" || status === "approved"),
      status,
      metadata: { ...site.metadata, ...(version === null ? {} : { version }), urls: [...urls], ...line },
    };
  }
}

function draftOf({ newId, nowMs }: Moment, id: string, eventType: RegistryEventType, payload: object): EventDraft {
  return {
    id: newId(),
    eventType,
    entityType: "controller",
    entityId: id,
    payload: payload as EventPayload,
    timestamp: nowMs,
  };
}

function badRequest(field: string, problem: string): TenureError {
  return new TenureError("BAD_REQUEST", `${field} ${problem}.`, { field });
}
