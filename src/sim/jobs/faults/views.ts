// What happens to views and history while the log is all right: the thread of the views dies, their file is lost while the node
// runs, a node comes back without its history of events, and without views, as after a swap of that disk; or what it writes of its
// history fails, and it ends.

import { assertNever } from "../../../core/kit/assert.ts";
import type { Random } from "../../../core/kit/random.ts";
import type { JobsCluster } from "../cluster.ts";
import type { JobsKnobs } from "../knobs.ts";

export type ViewsFault = { readonly atMs: number; readonly node: string } & (
  | { readonly kind: "crash-views" | "wipe-views" }
  | { readonly kind: "wipe-node" | "wipe-history"; readonly restartAfterMs: number }
  | { readonly kind: "fail-history"; readonly label: string }
);

const VIEWS_FAULTS = ["crash-views", "wipe-views", "wipe-node", "wipe-history", "fail-history"] as const;
const KINDS: readonly ViewsFault["kind"][] = ["crash-views", "wipe-views", "wipe-views", "wipe-node"];
const HISTORY_KINDS: readonly ViewsFault["kind"][] = ["wipe-history", "wipe-history", "fail-history"];
/** Where a full or a failing disk shows itself. */
const FAILING = ["archive-append", "archive-fdatasync", "archive-sync-directory", "archive-catalog-rename"];
const DOWN_MS: readonly [number, number] = [20, 800];
/** By then there are jobs that the book has dropped. */
const FROM = 0.3;

/** The last ones when nothing else fails any more: what is missing then is read from the history all the same. */
export function drawViewsFaults(random: Random, names: readonly string[], knobs: JobsKnobs): ViewsFault[] {
  const drawn = (count: number, label: string, kinds: typeof KINDS): ViewsFault[] =>
    Array.from({ length: count }, (_, at) => drawViewsFault(random.fork(`${label}${at}`), kinds, names, knobs));
  return [...drawn(knobs.viewsFaults, "", KINDS), ...drawn(knobs.historyFaults, "history/", HISTORY_KINDS)];
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
  if (kind === "fail-history") return { atMs, node, kind, label: random.pick(FAILING) };
  if (kind !== "crash-views" && kind !== "wipe-views")
    return { atMs, node, kind, restartAfterMs: Math.floor(random.between(...DOWN_MS)) };
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
    case "fail-history":
      return world.node(node).disk.faults.failNext({ label: fault.label, onHit: hit });
    case "wipe-node":
    case "wipe-history":
      if (world.crash(node) !== undefined) hit();
      stores.wipe(node, fault.kind === "wipe-node");
      return world.startAfter(node, fault.restartAfterMs);
    default:
      return assertNever(fault, "fault of views");
  }
}
