// How the next generation of this site's line begins. A cluster that was recovered or restored has another id, and so another author: the
// first thing that it writes, in the turn in which it may write at all, is `controller:recovered {line, through, hash, frontier}`, which
// names the line before and its last event. The ring of the new line follows when its keys are known (own-ring.ts).
//
// A site whose disk is behind its peers begins the next generation too, where an operator says so (signing-gate.ts): as another author of
// the same cluster, and after the last event that was written before the disk went back.
//
// It does not depend on the mode: a site that leaves the mesh for a while and is recovered meanwhile can go on later. A site that never
// had a ring has no line, and writes nothing.

import type { ChainHead, EventDraft, EventPayload } from "../../../core/events/index.ts";
import { recoveredPayload } from "../../../core/mesh/proof/index.ts";
import type { OwnPlace, Renewal } from "../../../core/mesh/registry/index.ts";
import type { JournalReign } from "../../journal/journal-reign.ts";
import type { JournalService } from "../../journal/service.ts";
import { type OwnLineFold, ringOf } from "./own-line-fold.ts";

export interface SuccessionOptions {
  readonly journal: Pick<JournalService, "serve">;
  readonly fold: Pick<OwnLineFold, "lines">;
  /** The last event that is applied, and the tree after it. */
  readonly head: () => ChainHead & { readonly frontier: Uint8Array };
  /** Of the events that are written now. */
  readonly author: () => string;
  readonly newId: () => string;
  /** The last new line that an operator asked for; null: none. */
  readonly renewed: () => Renewal | null;
  /** Where the own history was when the site was started and not compared yet; null: it is compared. */
  readonly gated: () => OwnPlace | null;
}

/** Before anybody else serves: what begins first writes first. */
export function continueLines(options: SuccessionOptions): void {
  options.journal.serve((reign) => {
    const draft = recoveredDraft(options, reign);
    // Where it is not committed the next reign writes it: nothing of this author is, then.
    if (draft !== null) reign.write([draft], reign).catch(() => undefined);
  });
}

function recoveredDraft(
  { fold, head, author, newId, renewed, gated }: SuccessionOptions,
  { nowMs }: Pick<JournalReign, "nowMs">,
): EventDraft | null {
  const own = fold.lines;
  const last = own?.generations.at(-1);
  if (own === null || last === undefined || last.end !== null) return null;
  const ring = ringOf(last);
  if (ring.author === author()) return null;
  const asked = renewed();
  if (asked?.author === author() && asked.line === last.line)
    return renewedDraft(own.controller, asked, newId(), nowMs);
  // What follows that place may be a second history, which no peer continues: it is of the next line.
  const place = gated();
  if (place !== null) return draftOf(own.controller, { line: last.line, ...place }, newId(), nowMs);
  const { sequence: size, hash, frontier } = head();
  const payload = recoveredPayload({ line: last.line, size, hash, frontier });
  return draftOf(own.controller, payload, newId(), nowMs);
}

/** The first event of a new line that an operator asked for. */
export function renewedDraft(controller: string, asked: Renewal, id: string, nowMs: number): EventDraft {
  const { line, through, hash, frontier } = asked;
  return draftOf(controller, { line, through, hash, frontier }, id, nowMs);
}

function draftOf(controller: string, payload: EventPayload, id: string, nowMs: number): EventDraft {
  return {
    id,
    eventType: "controller:recovered",
    entityType: "controller",
    entityId: controller,
    payload,
    timestamp: nowMs,
  };
}
