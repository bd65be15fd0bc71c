// What the registry's leader decides: who may register under which id and with which ring, and what an operator may do. Decided on what is
// applied; the answer is the payload of an event, nothing to write, or a refusal.
//
// A site proves that it has a key of its line by a signature (`provenBy`, verified before). What it may register with:
// - its line is pinned here: a key of the ring in force as far as this site has the line, or of the first one where it has nothing of it: a key that
//   the site has removed proves nothing any more;
// - it is new here: a key of the ring that it shows, which becomes the first ring of its line;
// - another line than the pinned one: the next generation, by a key of the last one. Anything else is a conflict, until an operator
//   approves that ring by its hash, which also stands for the proof.

import type { ErrorCode } from "../../kit/errors.ts";
import { canonicalJson } from "../../events/index.ts";
import { INTEGER_MAX } from "../../kit/limits.ts";
import type { Json } from "../../kit/json.ts";
import type { LineId, Ring } from "../model.ts";
import type { OwnPresence, PinnedLine, SiteApproved, SiteEvicted, SitePresence, SiteRegistered } from "./events.ts";
import { SITES_MAX } from "./limits.ts";
import { isVouched, type KnownSite } from "./model.ts";
import type { Registry } from "./registry.ts";

interface Refused {
  readonly kind: "refused";
  readonly code: ErrorCode;
  readonly message: string;
  /** Of the request, where one of them is wrong. */
  readonly field: string | undefined;
}

export type Decision<P> = { readonly kind: "write"; readonly payload: P } | { readonly kind: "unchanged" } | Refused;

export interface Registration {
  readonly id: string;
  readonly url: string;
  readonly name: string;
  readonly urls: readonly string[];
  readonly version: string | null;
  /** Null: it shows no ring, and sends no events. */
  readonly shown: ShownRing | null;
  readonly metadata: { readonly [key: string]: Json };
}

export interface ShownRing extends PinnedLine {
  readonly ringHash: string;
  /** Of generations before it, oldest first, as far as the site shows them. */
  readonly earlier: readonly PinnedLine[];
  /** The public key (base64) that has signed the proof; null: none has. */
  readonly provenBy: string | null;
}

/** The ring in force of a line, as far as this site has the line; null: it has nothing of it. */
export type RingInForce = (line: LineId) => Ring | null;

export function decideRegister(
  registry: Registry,
  asked: Registration,
  ringInForce: RingInForce,
): Decision<SiteRegistered> {
  const { id, url, name, urls, version, shown, metadata } = asked;
  if (registry.own?.controllerId === id) {
    return refused("CONTROLLER_CONFLICT", `${id} is the controller id of this site. Give the other site another id.`);
  }
  if (registry.leftAt !== null) return hasLeft();
  const known = registry.site(id);
  if (known?.isEvicted === true) return evicted(id);
  if (known === undefined && registry.size >= SITES_MAX) return noRoom();
  const refusal =
    shown === null
      ? unshownRefusal(known)
      : ringRefusal(id, known, shown, ringInForce, (line) => registry.forkOf(line) !== undefined);
  if (refusal !== null) return refusal;
  const ring = shown === null ? {} : { line: shown.line, ring: shown.ring, ...earlierOf(known, shown, ringInForce) };
  // Approved for keys that were not known here; now they are, and from now on the proof is asked for again.
  const isOver = shown !== null && known?.approvedRing === shown.ringHash && isPinnedKey(known, shown, ringInForce);
  const payload = { url, name, urls, version, ...ring, ...(isOver ? { isApprovalOver: true } : {}), metadata };
  const isBack = isOver || known?.isExpired === true || known?.presence?.hasLeft === true;
  if (known === undefined || isBack || !isSame(known, payload)) return { kind: "write", payload };
  return { kind: "unchanged" };
}

export interface Beat {
  readonly id: string;
  /** What has changed since it registered. */
  readonly url?: string | undefined;
  readonly urls?: readonly string[] | undefined;
  readonly version?: string | undefined;
}

/**
 * A heartbeat is written only where it says something new. NOT_FOUND: the site has to register again. While this site leaves, those that are
 * linked (`isLinked`) are heard until their links end: a refusal would end a link over which this site's word has not arrived yet.
 */
export function decideHeartbeat(registry: Registry, beat: Beat, isLinked: boolean): Decision<SiteRegistered> {
  const known = registry.site(beat.id);
  if (registry.leftAt !== null) return isLinked && known?.isEvicted === false ? { kind: "unchanged" } : hasLeft();
  const isOver = known?.isExpired === true || known?.presence?.hasLeft === true;
  if (known === undefined || (isOver && !known.isEvicted)) {
    return refused(
      "NOT_FOUND",
      `${beat.id} is not registered here, or its registration has expired or it has left. Register it again.`,
    );
  }
  if (known.isEvicted) return evicted(beat.id);
  const { url = known.url, urls = known.urls, version = known.version } = beat;
  const payload = { url, name: known.name, urls, version, metadata: known.metadata };
  return isSame(known, payload) ? { kind: "unchanged" } : { kind: "write", payload };
}

export function decideApprove(registry: Registry, id: string, approved: SiteApproved): Decision<SiteApproved> {
  const site = registry.site(id);
  if (registry.own?.controllerId === id) return refused("BAD_REQUEST", `${id} is this site itself.`, "id");
  if (site === undefined) {
    // Whoever knows its ring may approve a site before it has registered; a bare id might be anybody's.
    if (approved.ring === null) return unknownSite(id);
    return registry.size < SITES_MAX ? { kind: "write", payload: approved } : noRoom();
  }
  if (registry.status(site) === "forked" && approved.ring === null && site.approvedRing === null) {
    return refused(
      "BAD_REQUEST",
      `The line of ${id} has forked and stays frozen. Approve the ring of its next generation: \`tenure mesh approve ${id} --ring HASH\`.`,
      "ring",
    );
  }
  if (site.isApproved && !site.isEvicted && (approved.ring === null || approved.ring === site.approvedRing)) {
    return { kind: "unchanged" };
  }
  return { kind: "write", payload: { ...approved, ring: approved.ring ?? site.approvedRing } };
}

export function decideEvict(
  registry: Registry,
  id: string,
  by: string,
  sizeOf: (line: LineId) => number,
): Decision<SiteEvicted> {
  const site = registry.site(id);
  if (site === undefined) return unknownSite(id);
  if (site.isEvicted) return { kind: "unchanged" };
  const through = Object.fromEntries(site.lines.map(({ line }) => [line, sizeOf(line)]));
  return { kind: "write", payload: { by, through } };
}

/**
 * Those among them that are to expire: registered here, and not expired yet. A site that is known by the word of others alone sends its heartbeats to
 * them and not here: its silence says nothing.
 */
export function decideExpire(registry: Registry, silent: readonly string[]): readonly string[] {
  return silent.filter((id) => {
    const site = registry.site(id);
    if (site === undefined || isVouched(site)) return false;
    return !site.isExpired && !site.isEvicted && site.presence?.hasLeft !== true;
  });
}

/** An operator takes this site out of its mesh. */
export function decideLeave({ own, leftAt }: Registry, by: string): Decision<OwnPresence> {
  if (own === null) {
    return refused("BAD_REQUEST", "This site has no line yet, so no other site knows it: there is nothing to leave.");
  }
  return leftAt === null ? { kind: "write", payload: { by } } : { kind: "unchanged" };
}

/** An operator takes this site back into its mesh. */
export function decideJoin({ leftAt }: Registry, by: string): Decision<OwnPresence> {
  return leftAt === null ? { kind: "unchanged" } : { kind: "write", payload: { by } };
}

/**
 * What a site says in its own line about taking part: written where it is later than what is known. A word that comes again (a page that was taken up
 * to here when the leader ended) changes nothing.
 */
export function decidePresence(
  registry: Registry,
  id: string,
  said: SitePresence & { readonly hasLeft: boolean },
): Decision<SitePresence> {
  const { line, sequence } = said;
  const site = registry.site(id);
  const place = site?.lines.findIndex((one) => one.line === line) ?? -1;
  if (site === undefined || place < 0) return { kind: "unchanged" };
  const { presence } = site;
  if (presence === null || !presence.hasLeft) {
    // There is nothing to come back from.
    if (!said.hasLeft) return { kind: "unchanged" };
  }
  const before = presence === null ? -1 : site.lines.findIndex((one) => one.line === presence.line);
  const isLater = place > before || (presence?.line === line && sequence > presence.sequence);
  return isLater ? { kind: "write", payload: { line, sequence } } : { kind: "unchanged" };
}

/** A site whose ring is pinned proves that it has its keys each time: whoever has its API key alone does not change its name and addresses. */
function unshownRefusal(known: KnownSite | undefined): Refused | null {
  const newest = known?.lines.at(-1);
  if (known === undefined || newest === undefined) return null;
  return refused(
    "PERMISSION_DENIED",
    `${known.id} is known here with the line ${newest.line}: it registers with its line, its ring and a proof that is signed by a key of that ring.`,
  );
}

function ringRefusal(
  id: string,
  known: KnownSite | undefined,
  shown: ShownRing,
  ringInForce: RingInForce,
  isForked: (line: LineId) => boolean,
): Refused | null {
  const { line, ring, ringHash, provenBy } = shown;
  if (known?.approvedRing === ringHash) return null;
  const newest = known?.lines.at(-1);
  const pinned = known?.lines.find((one) => one.line === line);
  if (newest === undefined || pinned !== undefined) {
    if (isKeyOf(provenBy, ringInForce(line) ?? ring)) return null;
    return refused(
      "PERMISSION_DENIED",
      `The proof is not signed by a key of ${line} that is known here. If ${id} has changed its keys, an operator approves its first ring: \`tenure mesh approve ${id} --ring ${ringHash}\`.`,
    );
  }
  // A line of which nothing has come may be a lie of whoever vouched for it, with the site's own keys: it is in nobody's way.
  const last = known?.lines.findLast((one) => ringInForce(one.line) !== null) ?? newest;
  // Whoever has forked a line has its keys: only an operator says which of them is the site.
  const isNext = ring.generation > last.ring.generation && !isForked(last.line) && !isForked(newest.line);
  if (isNext && isKeyOf(provenBy, ringInForce(last.line) ?? last.ring)) return null;
  return refused(
    "CONTROLLER_CONFLICT",
    `${id} is registered here with another ring, of the line ${newest.line}. If this is the same site with new keys, an operator says so: \`tenure mesh approve ${id} --ring ${ringHash}\`. If not, give it another controller id.`,
  );
}

function isPinnedKey({ lines }: KnownSite, { line, ring, provenBy }: ShownRing, ringInForce: RingInForce): boolean {
  return lines.some((one) => one.line === line) && isKeyOf(provenBy, ringInForce(line) ?? ring);
}

function isKeyOf(key: string | null, { keys }: Ring): boolean {
  return key !== null && keys.some((one) => one.key === key);
}

/** Whoever shows a ring that an operator has approved, without a proof, has proven nothing: the hash says nothing of other lines and their keys. */
function earlierOf(known: KnownSite | undefined, shown: ShownRing, inForce: RingInForce) {
  const { earlier, line, ring, ringHash, provenBy } = shown;
  const last = known?.lines.findLast((one) => inForce(one.line) !== null) ?? known?.lines[0];
  const isProven = known?.approvedRing !== ringHash || isKeyOf(provenBy, inForce(line) ?? ring);
  const own = earlier.filter((one) => isProven || one.ring.keys.every(({ key }) => isKeyOf(key, ring)));
  return unknownOf(own, known, last);
}

/**
 * Lines between one that is known here (`last`) and the one that is shown: where a site was renewed twice meanwhile, or is new here. For the site itself
 * that is the last line of which something has come: of others after it somebody else may have spoken.
 */
export function unknownOf(
  earlier: readonly PinnedLine[],
  known: KnownSite | undefined,
  last: PinnedLine | undefined,
): { readonly earlier?: readonly PinnedLine[] } {
  const generation = last?.ring.generation ?? 0;
  const pinned = new Set(known?.lines.map(({ line }) => line));
  const unknown = earlier.filter(({ line, ring }) => ring.generation > generation && !pinned.has(line));
  return unknown.length === 0 ? {} : { earlier: unknown };
}

function isSame(known: KnownSite, payload: SiteRegistered): boolean {
  const { url, name, urls, version, metadata, line } = payload;
  const isPinned = line === undefined || known.lines.some((one) => one.line === line);
  const before = [known.url, known.name, known.urls, known.version, known.metadata];
  return isPinned && textOf(before) === textOf([url, name, urls, version, metadata ?? {}]);
}

/** Whatever the order of the names in it. */
function textOf(value: Parameters<typeof canonicalJson>[0]): string {
  return canonicalJson(value, INTEGER_MAX);
}

function noRoom(): Refused {
  return refused("OVERLOADED", `There are ${SITES_MAX} sites in the registry, and no room for another one.`);
}

function evicted(id: string): Refused {
  return refused("PERMISSION_DENIED", `${id} was evicted. An operator takes it back: \`tenure mesh approve ${id}\`.`);
}

/** What other sites are answered, as by one that is standalone. */
function hasLeft(): Refused {
  return refused("MESH_DISABLED", "This site has left its mesh. Its operator takes it back: `tenure mesh join`.");
}

function unknownSite(id: string): Refused {
  return refused("NOT_FOUND", `There is no site ${id} in the registry.`);
}

function refused(code: ErrorCode, message: string, field?: string): Refused {
  return { kind: "refused", code, message, field };
}
