// This site among other sites: its own line, kept going over recoveries, and, where the site is distributed, signed and shown.

import type { EventsService } from "../../controller/journal/events.ts";
import type { JournalService } from "../../controller/journal/service.ts";
import type { SiteJournal } from "../../controller/journal/site-journal.ts";
import { askCompared, askKey, askNote, askProof, type MeshAnswers } from "../../controller/mesh/own/key-queries.ts";
import { Lines } from "../../controller/mesh/lines.ts";
import { OwnLine } from "../../controller/mesh/own/own-line.ts";
import { OwnRing } from "../../controller/mesh/own/own-ring.ts";
import type { PointHistory } from "../../controller/mesh/own/page-reader.ts";
import { SigningGate } from "../../controller/mesh/own/signing-gate.ts";
import { continueLines } from "../../controller/mesh/own/succession.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { OwnPlace, Renewal } from "../../core/mesh/registry/index.ts";
import type { LineState, Ring } from "../../core/mesh/model.ts";
import { ringKeyOf } from "../../core/mesh/proof/index.ts";
import { decodeEvent } from "../../core/events/index.ts";
import type { ChainPoint } from "../../core/archive/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ForkView, LineSource, MeshLines, SiteView } from "../../ports/mesh/lines.ts";
import type { PeerQueries } from "../../ports/peers/queries.ts";
import type { Signer, VerifySignature } from "../../ports/signatures.ts";

/** What is configured of a site that is distributed. */
export interface MeshSettings {
  /** Of a site that has written no ring yet. */
  readonly controller: string;
  readonly name: string;
  /** Of this node. */
  readonly key: { readonly node: string; readonly signer: Signer };
  readonly verify: VerifySignature;
}

/** A node's log, as far as the own line needs it. */
export interface LineLog {
  /** The last event that is applied, and the tree after it. */
  readonly head: () => ChainPoint;
  /** Null: the site is standalone. */
  readonly mesh: MeshMembers | null;
}

export interface MeshMembers extends MeshSettings {
  readonly history: PointHistory;
  /** Of the cluster, without this node. */
  readonly others: () => readonly PeerKey[];
  /** Invited, and not joined yet. */
  readonly expected: () => readonly string[];
  /** Members that are not known to read records of the mesh. */
  readonly unready: () => readonly string[];
  readonly urls: () => readonly string[];
  readonly peers: Pick<PeerQueries, "ask">;
  /** What the other members are answered from now on. */
  readonly answerWith: (answers: MeshAnswers) => void;
}

interface Around {
  readonly journal: JournalService;
  readonly fold: SiteJournal;
  readonly author: () => string;
  /** As the log names it. */
  readonly loggedAuthor: () => string;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly logger: Logger;
  readonly newId: () => string;
}

/** Before any other service of the journal: what begins first writes first. */
export function keepLines(line: LineLog | undefined, { journal, fold, author, newId }: Around): void {
  if (line === undefined) return;
  const renewed = (): Renewal | null => fold.controllers.registry.renewed;
  const gated = (): OwnPlace | null => fold.controllers.registry.gated;
  continueLines({ journal, fold: fold.ownLine, head: line.head, author, newId, renewed, gated });
}

export interface OwnMesh {
  readonly lines: MeshLines;
  readonly gate: SigningGate;
  stop(): void;
}

export interface MeshParts {
  readonly events: EventsService;
  /** Lines of other sites. */
  readonly foreign: LineSource | undefined;
  readonly leads: () => boolean;
  /** What this site has of another site's line. */
  readonly lineState: (line: string) => LineState | null;
}

/** Undefined where the site is standalone. */
export function assembleMesh(
  line: LineLog | undefined,
  around: Around,
  { events, leads, foreign, lineState }: MeshParts,
): OwnMesh | undefined {
  const mesh = line?.mesh ?? null;
  if (mesh === null) return undefined;
  const { fold } = around;
  const { key, peers, others } = mesh;
  const ring = new OwnRing({
    ...around,
    ...mesh,
    fold: fold.ownLine,
    leads,
    own: ringKeyOf(key.node, key.signer.publicKey),
    askKey: (peer) => askKey(peers, peer),
    isPlaceDue: () => gate.isPlaceDue,
  });
  const gate: SigningGate = new SigningGate({
    ...around,
    registry: fold.controllers.registry,
    own: () => ({
      partAt: (id, size) => own.partAt(id, size),
      hasSigned: (id, note) => own.hasSigned(id, note),
    }),
    head: line!.head,
    canSign: () => own.status().kind !== "not-signing",
    hasOthers: () => others().length > 0,
    askOthers: async () => (await Promise.all(others().map((peer) => askCompared(peers, peer)))).includes(true),
  });
  const own: OwnLine = new OwnLine({
    ...mesh,
    fold: fold.ownLine,
    events,
    digest: around.digest,
    clock: around.clock,
    ringWaits: () => ring.waits,
    held: () => gate.held,
    askNote: (signers, asked) => answerOf(others(), signers, (peer) => askNote(peers, peer, asked)),
    askProof: (signers, possession) => answerOf(others(), signers, (peer) => askProof(peers, peer, possession)),
  });
  mesh.answerWith({
    publicKey: own.publicKey,
    isCompared: () => gate.isCompared,
    noteFor: (asked) => own.noteFor(asked),
    proofFor: (possession) => (possession.id === own.view()?.controller ? own.proofFor(possession) : null),
  });
  return {
    lines: new Lines({
      own,
      gate,
      foreign,
      sites: () => sitesOf(fold, lineState),
      leftAt: () => fold.controllers.registry.leftAt,
      forks: () => fold.controllers.registry.forks(),
      evidenceAt: (sequence) => evidenceAt(events, sequence),
    }),
    gate,
    stop: () => {
      gate.stop();
      ring.stop();
    },
  };
}

async function evidenceAt(events: EventsService, sequence: number): Promise<ForkView["evidence"]> {
  if (sequence < events.head().first) return null;
  const { events: found } = await events.read(sequence - 1, { filter: null, max: 1, bytesMax: Infinity });
  const read = found[0] === undefined ? null : decodeEvent(found[0].bytes);
  return read?.kind === "event" ? (read.event.payload["evidence"] as ForkView["evidence"]) : null;
}

function sitesOf({ controllers: { registry } }: SiteJournal, lineState: MeshParts["lineState"]): readonly SiteView[] {
  return registry.sites().map((site) => {
    const newest = site.lines.at(-1);
    const state = newest === undefined ? null : lineState(newest.line);
    return {
      id: site.id,
      name: site.name,
      url: site.url,
      status: registry.status(site),
      line: newest?.line ?? null,
      ring: state?.ring ?? newest?.ring ?? null,
      size: state?.size ?? 0,
      lastEventAtMs: state === null || state.size === 0 ? null : state.timestamp,
    };
  });
}

/** Whose events a site writes: as the log says, until an operator began a new line in it. */
export function authorOf(logged: string, renewed: Renewal | null): string {
  return renewed?.before === logged ? renewed.author : logged;
}

/** Of the members with a key of this ring, the first that has an answer. */
async function answerOf<T>(
  others: readonly PeerKey[],
  { keys }: Ring,
  ask: (peer: PeerKey) => Promise<T | null>,
): Promise<T | null> {
  for (const peer of others.filter((one) => keys.some(({ node }) => node === nodeIdOf(one)))) {
    const answer = await ask(peer);
    if (answer !== null) return answer;
  }
  return null;
}
