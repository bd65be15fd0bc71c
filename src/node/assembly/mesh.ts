// This site among other sites: its own line, kept going over recoveries, and, where the site is distributed, signed and shown.

import type { EventsService } from "../../controller/journal/events.ts";
import type { JournalService } from "../../controller/journal/service.ts";
import type { SiteJournal } from "../../controller/journal/site-journal.ts";
import { askKey, askNote, type MeshAnswers } from "../../controller/mesh/key-queries.ts";
import { Lines } from "../../controller/mesh/lines.ts";
import { OwnLine } from "../../controller/mesh/own-line.ts";
import { OwnRing } from "../../controller/mesh/own-ring.ts";
import type { PointHistory } from "../../controller/mesh/page-reader.ts";
import { continueLines } from "../../controller/mesh/succession.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import { ringKeyOf } from "../../core/mesh/proof/index.ts";
import type { ChainPoint } from "../../core/archive/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Logger } from "../../ports/logger.ts";
import type { LineSource, MeshLines, SiteView } from "../../ports/mesh-lines.ts";
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
  readonly clock: Clock;
  readonly digest: Digest;
  readonly logger: Logger;
  readonly newId: () => string;
}

/** Before any other service of the journal: what begins first writes first. */
export function keepLines(line: LineLog | undefined, { journal, fold, author, newId }: Around): void {
  if (line === undefined) return;
  continueLines({ journal, fold: fold.ownLine, head: line.head, author, newId });
}

export interface OwnMesh {
  readonly lines: MeshLines;
  stop(): void;
}

export interface MeshParts {
  readonly events: EventsService;
  /** Lines of other sites. */
  readonly foreign: LineSource | undefined;
  readonly leads: () => boolean;
}

/** Undefined where the site is standalone. */
export function assembleMesh(
  line: LineLog | undefined,
  around: Around,
  { events, leads, foreign }: MeshParts,
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
  });
  const own = new OwnLine({
    ...mesh,
    fold: fold.ownLine,
    events,
    digest: around.digest,
    clock: around.clock,
    ringWaits: () => ring.waits,
    askNote: async ({ keys }, asked) => {
      const holders = others().filter((peer) => keys.some(({ node }) => node === nodeIdOf(peer)));
      for (const peer of holders) {
        const note = await askNote(peers, peer, asked);
        if (note !== null) return note;
      }
      return null;
    },
  });
  mesh.answerWith({ publicKey: own.publicKey, noteFor: (asked) => own.noteFor(asked) });
  return { lines: new Lines({ own, foreign, sites: () => sitesOf(fold) }), stop: () => ring.stop() };
}

function sitesOf({ controllers: { registry } }: SiteJournal): readonly SiteView[] {
  return registry.sites().map((site) => ({
    id: site.id,
    name: site.name,
    url: site.url,
    status: registry.status(site),
    line: site.lines.at(-1)?.line ?? null,
  }));
}
