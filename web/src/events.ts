// The cluster's events as they come, over the SDK, which goes on at another node when one dies. Hundreds a second may come:
// they are only kept (the last of them), and what is drawn is told a few times a second.

import { computed, effect, signal } from "@preact/signals";
import { createSteering } from "../../src/client/client.ts";
import type { EventView, StatsView } from "../../src/client/index.ts";
import { hasLooked, isOpen, leadership, nodes, read, reader } from "./nodes.ts";
import { isVisible, key } from "./page.ts";

/** Mutations, logs and events: finds the leader by itself. It holds nothing, so a new one for each key costs nothing. */
const urls = computed(() => {
  // Those that answer first: a node that stands still would be waited for.
  const all = nodes.value.toSorted((a, b) => Number(b.isReached) - Number(a.isReached));
  return all.map(({ url }) => url).join(",");
});
export const client = computed(() =>
  createSteering({ urls: urls.value, ...(key.value === "" ? {} : { key: key.value }) }),
);

const KEPT_MAX = 200;
/** How many from before are shown when the page is opened. */
const BEFORE = 50;
const DRAW_EVERY_MS = 300;
const AGAIN_AFTER_MS = 2_000;

type EntityType = EventView["entityType"];

/** Newest last. */
export const recent = signal<readonly EventView[]>([]);
export const streamState = signal<"live" | "opening">("opening");
/** Since the page was opened. */
export const seen = signal(0);
export const perSecond = signal(0);
/** Grow when there was an event of the kind; lists look at them. */
export const changes = { build: signal(0), worker: signal(0), queue: signal(0), schedule: signal(0) } as const;

let kept: EventView[] = [];
let fresh = 0;
const touched = new Set<EntityType>();
let drawnAtMs = performance.now();

export function start(): void {
  setInterval(draw, DRAW_EVERY_MS);
  let over: AbortController | null = null;
  // Restarted with another key or where a node has gone or come, from where it was; closed while nobody looks.
  effect(() => {
    const isWanted = isVisible.value && isOpen.value && hasLooked.value;
    void client.value;
    over?.abort();
    over = null;
    if (!isWanted) return;
    over = new AbortController();
    void follow(over.signal);
  });
}

async function follow(ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    try {
      const last = kept.at(-1);
      const after = last?.sequence ?? (await beginning(ended));
      for await (const event of client.peek().events({ after, afterHash: last?.eventHash, signal: ended })) {
        kept.push(event);
        if (kept.length > 2 * KEPT_MAX) kept = kept.slice(-KEPT_MAX);
        fresh++;
        touched.add(event.entityType);
        streamState.value = "live";
      }
    } catch {
      if (ended.aborted) return;
      // What lies between may be gone from the history, or the history was rewritten: begin anew, with what is there.
      kept = [];
    }
    streamState.value = "opening";
    await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS));
  }
}

async function beginning(ended: AbortSignal): Promise<number> {
  const { lastSequence, firstSequence } = await read<StatsView>("/v1/stats", ended);
  streamState.value = "live";
  return Math.max(firstSequence - 1, lastSequence - BEFORE, 0);
}

/** What another reader was shown is not for this one. */
reader.subscribe(() => {
  kept = [];
  fresh = 0;
  recent.value = [];
  seen.value = 0;
});

function draw(): void {
  const nowMs = performance.now();
  perSecond.value = Math.round((fresh * 1_000) / Math.max(1, nowMs - drawnAtMs));
  drawnAtMs = nowMs;
  if (fresh === 0) return;
  seen.value += fresh;
  fresh = 0;
  recent.value = kept.slice(-KEPT_MAX);
  for (const [type, change] of Object.entries(changes)) if (touched.has(type)) change.value++;
  touched.clear();
}

/** Someone else leads: what lists show may have changed with no event. */
let lastEpoch: number | null = null;
effect(() => {
  const { epoch } = leadership.value;
  if (epoch === lastEpoch) return;
  lastEpoch = epoch;
  for (const change of Object.values(changes)) change.value = change.peek() + 1;
});
