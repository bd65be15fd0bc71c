// The events of all sites as they arrive at this one: the newest at first, then what comes after, by polling this site's own nodes. Arrivals are
// numbered alike on all of them, so that another node goes on where one has gone.

import { effect, type ReadonlySignal, signal, untracked } from "@preact/signals";
import { type EventFilter, meshEventsPath } from "./address.ts";
import {
  earlierPlace,
  EMPTY_FEED,
  EVENTS_PAGE,
  type EventsAnswer,
  fed,
  fedBack,
  type Feed,
  type MeshEvent,
} from "./event-feed.ts";
import { type Evidence, checkpointIn, type Proof, proofOf } from "./event-proof.ts";
import { checkSignature, type SignatureCheck } from "./note-signature.ts";
import { readBody, readText, reader } from "./nodes.ts";
import { address, isVisible } from "./page.ts";

const POLL_MS = 500;
const AGAIN_AFTER_MS = 2_000;

/** Follows until the returned function is called. */
export function follow(): { readonly feed: ReadonlySignal<Feed>; readonly stop: () => void } {
  const feed = signal<Feed>(EMPTY_FEED);
  let over = new AbortController();
  const stop = effect(() => {
    const { site, type, entity } = address.value;
    void reader.value;
    over.abort();
    over = new AbortController();
    feed.value = EMPTY_FEED;
    const filter = { site, type, entity };
    // What a request looks at (which nodes answer, the key) is not what begins it again.
    if (isVisible.value) untracked(() => void poll(filter, feed, over.signal));
  });
  return {
    feed,
    stop: () => {
      stop();
      over.abort();
    },
  };
}

async function poll(filter: EventFilter, feed: { value: Feed; peek(): Feed }, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    let pauseMs = POLL_MS;
    try {
      const answer = await eventsPage(filter, feed.peek().after, ended);
      if (ended.aborted) return;
      feed.value = fed(feed.peek(), answer);
      if (answer.next !== null) pauseMs = 0;
      // Only without a filter it is known how far back a page reaches.
      const place = Object.values(filter).some((text) => text !== "") ? null : earlierPlace(feed.peek(), Date.now());
      if (place !== null) {
        const earlier = await eventsPage(filter, place, ended);
        if (ended.aborted) return;
        feed.value = fedBack(feed.peek(), place, earlier);
        pauseMs = 0;
      }
    } catch (error) {
      if (ended.aborted) return;
      feed.value = { ...feed.peek(), error: error instanceof Error ? error.message : String(error) };
      pauseMs = AGAIN_AFTER_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

async function eventsPage(filter: EventFilter, after: number | null, ended: AbortSignal): Promise<EventsAnswer> {
  return (await readBody(meshEventsPath(filter, after, EVENTS_PAGE), ended)) as EventsAnswer;
}

/** Asks this site for all that proves the event, and checks it here. */
export async function verify(event: MeshEvent, ended: AbortSignal): Promise<Verified> {
  const { line, line_sequence: sequence } = event;
  const note = await readText(`/v1/mesh/checkpoint?line=${line}`, ended);
  const size = checkpointIn(note)?.size ?? 0;
  if (size < sequence) return { kind: "refuted", why: "the signed checkpoint is from before the event" };
  const [pages, proof, sites] = await Promise.all([
    readBody(`/v1/mesh/pages?line=${line}&after=${sequence - 1}`, ended),
    readBody(`/v1/events/proof?line=${line}&sequence=${sequence}&tree_size=${size}`, ended),
    readBody("/v1/mesh/sites", ended),
  ]);
  const { page } = pages as { readonly page: { readonly after: number; readonly items: readonly unknown[] } | null };
  const evidence: Evidence = {
    item: page === null ? null : page.items[sequence - 1 - page.after],
    note,
    path: (proof as { readonly path: unknown }).path,
  };
  const { event_hash: eventHash, event_type: eventType, entity_id: entityId, timestamp, payload } = event;
  const said = { eventType, entityId, timestamp, payload };
  const proven = proofOf({ line, lineSequence: sequence, eventHash, said }, evidence);
  if (proven.kind === "refuted") return proven;
  const signature = await checkSignature(note, ringOf(sites as RingsAnswer, line), globalThis.crypto?.subtle);
  if (signature.kind === "invalid") return { kind: "refuted", why: `of the checkpoint ${signature.why}` };
  return { ...proven, signature };
}

/** What is proven of an event, and whether the checkpoint's signature was. */
export type Verified =
  | Extract<Proof, { kind: "refuted" }>
  | (Extract<Proof, { kind: "proven" }> & { readonly signature: Exclude<SignatureCheck, { kind: "invalid" }> });

/** Of GET /v1/mesh/sites: the ring in force of each site's newest line. */
interface RingsAnswer {
  readonly own: { readonly line: string; readonly ring: unknown } | null;
  readonly sites: readonly { readonly line: string | null; readonly ring: unknown }[];
}

function ringOf({ own, sites }: RingsAnswer, line: string): unknown {
  if (own?.line === line) return own.ring;
  return sites.find((site) => site.line === line)?.ring ?? null;
}
