// What the merged state is made of: an event, and where it is in its line.

import type { StoredEvent } from "../../events/index.ts";
import type { LineId } from "../model.ts";
import type { Version } from "./version.ts";

export interface LineEvent {
  readonly line: LineId;
  readonly generation: number;
  /** `sequence` is that of the line. The payload is another site's: not to be trusted. */
  readonly event: Pick<StoredEvent, "id" | "sequence" | "timestamp" | "eventType" | "entityId" | "payload">;
}

export function versionOf({ generation, event }: LineEvent): Version {
  return { generation, sequence: event.sequence };
}

/** The site that a line belongs to: its controller id has no dot. */
export function siteOf(line: LineId): string {
  const dot = line.indexOf(".");
  return dot < 0 ? line : line.slice(0, dot);
}
