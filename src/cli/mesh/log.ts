// `tenure mesh log`: the events of all sites in the order in which they arrived at this one, as the node has merged them.

import type { Caller } from "../../client/caller.ts";
import { isoTime, printable } from "../kit/output.ts";
import { MESH_CALL_MS, MESH_LOG_NEWEST_MAX, MESH_LOG_PAGE, MESH_LOG_POLL_MS } from "../limits.ts";

const WITHHELD = "withheld";
/** Of all columns but the last. Lines are written as they come, so no longer one is known before; most names are shorter. */
const WIDTHS = [8, 24, 20, 22] as const;

export interface LogStep {
  readonly verb: "log";
  readonly site: string | null;
  readonly type: string | null;
  readonly entity: string | null;
  /** An arrival: what follows it is shown. Null: the newest ones are. */
  readonly after: number | null;
  readonly limit: number | null;
  readonly isFollowed: boolean;
}

interface ArrivedEvent {
  readonly arrival: number;
  readonly site: string;
  readonly line: string;
  readonly line_sequence: number;
  readonly timestamp: number;
  readonly event_type: string;
  readonly entity_id: string;
}

/** What GET /v1/mesh/events answers, as it is written: payloads keep their names. */
interface ArrivedPage {
  readonly events: readonly ArrivedEvent[];
  readonly next: number | null;
  readonly dropped_through: number;
  readonly through: number;
}

export interface LogOutput {
  readonly isJson: boolean;
  /** Resolves when there is room for more. */
  readonly write: (text: string) => Promise<void>;
  readonly warn: (text: string) => void;
  readonly pause: (ms: number) => Promise<void>;
}

/** Until everything that there is, or as much as was asked for, is shown; followed: until the signal aborts. */
export async function showLog(caller: Caller, step: LogStep, out: LogOutput, signal: AbortSignal): Promise<void> {
  const { limit, isFollowed } = step;
  let { after } = step;
  let left = limit ?? (after === null ? MESH_LOG_PAGE : Infinity);
  while (!signal.aborted) {
    const asked = pathOf(step, after, Math.min(left, after === null ? MESH_LOG_NEWEST_MAX : MESH_LOG_PAGE));
    const response = await caller.read({ method: "GET", path: asked }, { signal, timeoutMs: MESH_CALL_MS });
    const page = (await response.json()) as ArrivedPage;
    if (after !== null && after < page.dropped_through) {
      out.warn(`arrivals up to ${page.dropped_through} are not kept for search any more: tenure mesh audit reads all`);
    }
    for (const event of page.events.slice(0, left)) await out.write(lineOf(event, out.isJson));
    left -= Math.min(left, page.events.length);
    // Another node may not have got so far.
    after = Math.max(page.next ?? page.through, after ?? 0);
    if (left === 0 && limit !== null) return;
    if (page.next !== null) continue;
    if (!isFollowed) return;
    left = limit === null ? Infinity : left;
    await out.pause(MESH_LOG_POLL_MS);
  }
}

function pathOf({ site, type, entity }: LogStep, after: number | null, limit: number): string {
  const query = new URLSearchParams({ limit: `${limit}` });
  if (after !== null) query.set("after_arrival", `${after}`);
  for (const [name, value] of Object.entries({ site, type, entity })) if (value !== null) query.set(name, value);
  return `/v1/mesh/events?${query.toString()}`;
}

function lineOf(event: ArrivedEvent, isJson: boolean): string {
  if (isJson) return `${JSON.stringify(event)}\n`;
  const { arrival, site, line_sequence, timestamp, event_type, entity_id } = event;
  // Of an event whose text did not leave its site the hash alone is known, and no time.
  const time = event_type === WITHHELD ? "-" : isoTime(timestamp);
  const words = [`${arrival}`.padStart(8), time, `${site}/${line_sequence}`, event_type].map(printable);
  const columns = words.map((word, at) => word.padEnd(WIDTHS[at]!));
  return `${[...columns, printable(entity_id)].join("  ")}\n`;
}
