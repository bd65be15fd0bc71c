// What happens to views and history while the log is all right: the thread of the views dies, their file is lost while the node
// runs, or a node comes back without views and without its history of events, as after a swap of that disk.

import { assertNever } from "../../../core/kit/assert.ts";
import type { Random } from "../../../core/kit/random.ts";
import type { JobsCluster } from "../cluster.ts";
import type { JobsKnobs } from "../knobs.ts";

export type ViewsFault = { readonly atMs: number; readonly node: string } & (
  | { readonly kind: "crash-views" | "wipe-views" }
  | { readonly kind: "wipe-node"; readonly restartAfterMs: number }
);

const VIEWS_FAULTS = ["crash-views", "wipe-views", "wipe-node"] as const;
const KINDS: readonly ViewsFault["kind"][] = ["crash-views", "wipe-views", "wipe-views", "wipe-node"];
const DOWN_MS: readonly [number, number] = [20, 800];
/** By then there are jobs that the book has dropped. */
const FROM = 0.3;

/** The last ones when nothing else fails any more: what is missing then is read from the history all the same. */
export function drawViewsFaults(random: Random, names: readonly string[], knobs: JobsKnobs): ViewsFault[] {
  return Array.from({ length: knobs.viewsFaults }, (_, at) => {
    const stream = random.fork(`${at}`);
    return drawViewsFault(stream, KINDS, names, knobs);
  });
}

export function drawViewsFault(
  random: Random,
  kinds: readonly ViewsFault["kind"][],
  names: readonly string[],
  { faultsUntilMs }: JobsKnobs,
): ViewsFault {
  const kind = random.pick(kinds);
  const node = random.pick(names);
  const atMs = Math.floor(random.between(FROM, 1) * faultsUntilMs);
  if (kind === "wipe-node") return { atMs, node, kind, restartAfterMs: Math.floor(random.between(...DOWN_MS)) };
  return { atMs, node, kind };
}

export function isViewsFault(kind: string): kind is ViewsFault["kind"] {
  return VIEWS_FAULTS.some((one) => one === kind);
}

export function applyViewsFault({ world, stores }: JobsCluster, fault: ViewsFault, hit: () => void): void {
  const { node } = fault;
  switch (fault.kind) {
    case "crash-views":
      world.call(node, () => {
        hit();
        stores.crashViews(node);
      });
      return;
    case "wipe-views":
      world.call(node, () => {
        hit();
        stores.discardViews(node);
      });
      return;
    case "wipe-node":
      if (world.crash(node) !== undefined) hit();
      stores.wipe(node);
      return world.startAfter(node, fault.restartAfterMs);
    default:
      return assertNever(fault, "fault of views");
  }
}
