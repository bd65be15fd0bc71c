// Events of several sites for the tests of mesh.sqlite, and directories with one in them.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { encodeEvent } from "../../src/core/events/event.ts";
import type { LineEvent } from "../../src/core/mesh/merge/index.ts";
import { openMeshViews } from "../../src/drivers/sqlite/index.ts";
import type { ArrivedEvent, MeshViews } from "../../src/ports/mesh/views.ts";
import { newLogger } from "./test-jobs.ts";

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

export async function newMeshPath(prefix = "tenure-mesh-"): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), prefix));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return join(directory, "mesh.sqlite");
}

/** Closed after the test. */
export async function openMesh(
  path: string,
  options?: Partial<Parameters<typeof openMeshViews>[0]>,
): Promise<MeshViews> {
  const views = await openMeshViews({ path, clusterId: "c1", logger: newLogger().logger, ...options });
  cleanups.push(() => views.close());
  return views;
}

function bytesOf({ line, event }: LineEvent): Uint8Array {
  return encodeEvent({
    ...event,
    entityType: event.eventType.split(":")[0]!,
    leaderEpoch: 1,
    previousHash: event.sequence === 1 ? null : "0".repeat(64),
    sourceControllerId: line.split(".")[0]!,
  });
}

/** In this order, the first as arrival `from`. */
export function arrivals(events: readonly LineEvent[], from = 1): ArrivedEvent[] {
  return events.map((event, at) => ({
    arrival: from + at,
    line: event.line,
    generation: event.generation,
    lineSequence: event.event.sequence,
    event: bytesOf(event),
    receipt: null,
    arrivedMs: 5_000 + from + at,
  }));
}

export async function* batches(all: readonly ArrivedEvent[], size = 7): AsyncGenerator<readonly ArrivedEvent[]> {
  for (let at = 0; at < all.length; at += size) yield await Promise.resolve(all.slice(at, at + size));
}

let serial = 0;

/** One event of a line. */
export function says(
  line: string,
  sequence: number,
  eventType: `${string}:${string}`,
  entityId: string,
  payload: LineEvent["event"]["payload"] = {},
): LineEvent {
  const id = `e${++serial}`;
  return { line, generation: 1, event: { id, sequence, eventType, entityId, payload, timestamp: 1_000 + sequence } };
}
