// Events as they are printed: a line for people, an object for programs. Pure; the fields of the object are documented in
// docs/reference/cli.md, and a test compares.

import type { EventView } from "../../client/index.ts";
import { toSnake } from "../../contract/snake-case.ts";
import type { TailStep } from "./flags.ts";
import { isoTime, json, type Output, printable } from "../kit/output.ts";
import { PAYLOAD_LETTERS_MAX } from "../limits.ts";

/** Lines come one by one, so no column knows how wide the others are. */
const SEQUENCE_WIDTH = 7;
const TYPE_WIDTH = 17;

export function eventLine(output: Output, event: EventView): string {
  return output === "table" ? eventText(event) : json(eventObject(event));
}

/** As it is sealed: who has this can check its hash. */
function eventObject(event: EventView) {
  return { at: isoTime(event.timestamp), ...toSnake(event) };
}

function eventText({ sequence, timestamp, eventType, entityId, payload }: EventView): string {
  const cells = [
    String(sequence).padStart(SEQUENCE_WIDTH),
    isoTime(timestamp),
    eventType.padEnd(TYPE_WIDTH),
    entityId,
    payloadText(payload),
  ];
  return `${printable(cells.join("  ")).trimEnd()}\n`;
}

/** Without `request`, by which the servers know a call that comes twice: it is long, and says nothing of what happened. */
function payloadText(payload: EventView["payload"]): string {
  if (typeof payload !== "object" || payload === null) return shortened(JSON.stringify(payload));
  const told = Object.entries(payload).filter(([name]) => name !== "request");
  return told.length === 0 ? "" : shortened(JSON.stringify(Object.fromEntries(told)));
}

function shortened(text: string): string {
  if (text.length <= PAYLOAD_LETTERS_MAX) return text;
  // Half a pair of surrogates is no letter.
  return `${text.slice(0, PAYLOAD_LETTERS_MAX - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** What the server's filter does, for `--no-follow`, which must see the last event whatever it is. */
export function isWanted(
  { types, entityId, entityType }: Pick<TailStep, "types" | "entityId" | "entityType">,
  event: Pick<EventView, "eventType" | "entityId" | "entityType">,
): boolean {
  const isOfType = types?.some((type) => type === event.eventType || type === `${event.eventType.split(":", 1)[0]}:*`);
  return (
    isOfType !== false &&
    (entityId === undefined || entityId === event.entityId) &&
    (entityType === undefined || entityType === event.entityType)
  );
}
