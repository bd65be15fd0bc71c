// The command line of `tenure event`: which events, from where on and for how long, checked before anything is asked.

import { CONNECTION_KINDS, ownOf } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { EVENT } from "./help.ts";
import { ENTITY_TYPES, type EntityType, EVENT_TYPES } from "../../core/events/names.ts";
import { readEventPoint } from "../../contract/event-point.ts";
import type { StepFlags } from "../connection/connection.ts";
import { parseFlags, suggestion, UsageError } from "../kit/flags.ts";
import { wholeNumber } from "../job/spec-flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { chosen, noName, refuseStray } from "../kit/words.ts";
import { SEQUENCE_MAX } from "../limits.ts";

const VERBS = verbsOf(EVENT);
/** What they are called everywhere else. */
const OTHER_NAMES: Readonly<Record<string, EntityType>> = { job: "build", agent: "worker" };

const KINDS = { ...CONNECTION_KINDS, ...kindsOf(EVENT) };
const TAIL_FLAGS = ownOf(KINDS);

export interface TailStep {
  readonly verb: "tail";
  readonly after: number | undefined;
  readonly afterHash: string | undefined;
  readonly types: readonly string[] | undefined;
  readonly entityId: string | undefined;
  readonly entityType: EntityType | undefined;
  readonly limit: number;
  readonly isFollowed: boolean;
}
export type EventStep = TailStep | { readonly verb: "verify" };

export function readEventFlags(args: readonly string[]): StepFlags<EventStep> | "help" {
  const { values, lists, words: before, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return "help";
  const words = [...before, ...(rest ?? [])];
  const verb = chosen(words[0], VERBS);
  noName(words);
  refuseStray(values, TAIL_FLAGS, "tail", verb);
  const { after, limit, "entity-id": entityId, "entity-type": entityType } = values;
  if (verb === "verify") return { step: { verb }, connection: values };
  if (entityId === "") throw new UsageError("--entity-id must not be empty");
  const step: TailStep = {
    verb,
    ...startOf(after),
    types: lists.type?.flatMap((text) => text.split(",").map(typeOf)),
    entityId,
    entityType: entityType === undefined ? undefined : entityTypeOf(entityType),
    limit: limit === undefined ? Number.POSITIVE_INFINITY : wholeNumber("--limit", limit, 1, SEQUENCE_MAX),
    isFollowed: values["no-follow"] === undefined,
  };
  return { step, connection: values };
}

/** `57`, or with the event's hash as its JSON has it: `57:9f86…`. */
function startOf(text: string | undefined): Pick<TailStep, "after" | "afterHash"> {
  if (text === undefined) return { after: undefined, afterHash: undefined };
  const point = readEventPoint(text);
  if (point !== null && point.hash !== null) return { after: point.sequence, afterHash: point.hash };
  return { after: wholeNumber("--after", text, 0, SEQUENCE_MAX), afterHash: undefined };
}

function typeOf(text: string): string {
  const names = [...ENTITY_TYPES.map((name) => `${name}:*`), ...EVENT_TYPES];
  if (names.includes(text)) return text;
  const near = suggestion(text, names);
  throw new UsageError(
    `--type has ${JSON.stringify(text)}, and there are no such events${near === "" ? `; give ${names.join(", ")}` : near}`,
  );
}

function entityTypeOf(text: string): EntityType {
  const found = ENTITY_TYPES.find((name) => name === text);
  if (found !== undefined) return found;
  const meant = Object.hasOwn(OTHER_NAMES, text) ? OTHER_NAMES[text] : undefined;
  const near = meant === undefined ? suggestion(text, ENTITY_TYPES) : `; did you mean ${meant}?`;
  throw new UsageError(`--entity-type takes ${ENTITY_TYPES.join(", ")}, not ${JSON.stringify(text)}${near}`);
}
