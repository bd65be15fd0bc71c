// The command line of `tenure event`: which events, from where on and for how long, checked before anything is asked.

import type { EntityType } from "../client/index.ts";
import { readEventPoint } from "../contract/event-point.ts";
import { CONNECTION_HELP, CONNECTION_KINDS, type ConnectionValues } from "./cluster-connection.ts";
import { chosen } from "./cluster-flags.ts";
import { parseFlags, suggestion, UsageError } from "./flags.ts";
import { wholeNumber } from "./job-spec-flags.ts";
import { withLongOutput } from "./output.ts";
import { noName, refuseStray } from "./words.ts";

const VERBS = ["tail", "verify"] as const;
/** As many digits as the servers read. */
const SEQUENCE_MAX = 999_999_999_999_999;
/** What they are called everywhere else. */
const OTHER_NAMES: Readonly<Record<string, EntityType>> = { job: "build", agent: "worker" };
/** As the journal has them (a test compares with its tenants): of a misspelt one nothing ever comes. */
export const EVENT_NAMES = [
  "build:submitted",
  "build:assigned",
  "build:building",
  "build:log",
  "build:completed",
  "build:failed",
  "build:retried",
  "build:cancelling",
  "build:cancelled",
  "build:forgotten",
  "worker:registered",
  "worker:offline",
  "worker:removed",
  "queue:paused",
  "queue:resumed",
  "schedule:put",
  "schedule:deleted",
  "schedule:fired",
  "key:created",
  "key:revoked",
  "certificate:revoked",
  "controller:recovered",
] as const;
export const ENTITY_NAMES = [...new Set(EVENT_NAMES.map((name) => name.slice(0, name.indexOf(":")) as EntityType))];

export const EVENT_HELP = `tenure event VERB [--url URL[,URL…]] [-o table|json|jsonl]: everything that happens to jobs, agents, queues,
schedules, keys and certificates, in one log, sealed.

  tail               a line for each event as it comes, until SIGINT; goes on at another node where one dies. Each once, in
                     order, without gaps. With -o json or -o jsonl the whole event on a line
  verify             asks every node to read and check all the events that it has, and whether their copies are the same;
                     -o table or json. On a long history it takes a while

  --after SEQUENCE   tail: begin after this event, 0 for the first (default: with what comes from now on). SEQUENCE:HASH, with
                     the event's eventHash: and only where the history still has that event
  --type T[,T…]      tail: only of these types, such as build:completed or build:* (a job is a build, an agent a worker)
  --entity-id ID     tail: only of this job, agent, queue, schedule, key or certificate (its SHA-256)
  --entity-type T    tail: only of build, worker, queue, schedule, key, certificate or controller
  --limit N          tail: end after N events
  --no-follow        tail: end with the last event that there is now; without --after, from the first that is kept
${CONNECTION_HELP}
It needs the role viewer.

exit codes: 0 done; verify: every node that answers has a whole history, and they are the same; 64 wrong use, or --after names an event that there is not yet;
69 no server answers, the events behind --after are not kept any more, or the history was rewritten (HISTORY_REWRITTEN: the message says after which event to start again); 74 verify: a history is broken, or two differ; 75 verify: a node
verifies already; 77 the key may not do this; 78 a certificate that is not trusted (--ca) or can't be used (docs/errors.md);
130 and 143 ended by SIGINT or SIGTERM
`;

const TAIL_KINDS = {
  after: "value",
  type: "list",
  "entity-id": "value",
  "entity-type": "value",
  limit: "value",
  "no-follow": "switch",
} as const;
const KINDS = { ...CONNECTION_KINDS, ...TAIL_KINDS };
const TAIL_FLAGS = Object.keys(TAIL_KINDS) as (keyof typeof TAIL_KINDS)[];

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

export interface EventFlags {
  readonly step: EventStep;
  readonly connection: ConnectionValues;
}

export function readEventFlags(args: readonly string[]): EventFlags | "help" {
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
  const names = [...ENTITY_NAMES.map((name) => `${name}:*`), ...EVENT_NAMES];
  if (names.includes(text)) return text;
  const near = suggestion(text, names);
  throw new UsageError(
    `--type has ${JSON.stringify(text)}, and there are no such events${near === "" ? `; give ${names.join(", ")}` : near}`,
  );
}

function entityTypeOf(text: string): EntityType {
  const found = ENTITY_NAMES.find((name) => name === text);
  if (found !== undefined) return found;
  const meant = Object.hasOwn(OTHER_NAMES, text) ? OTHER_NAMES[text] : undefined;
  const near = meant === undefined ? suggestion(text, ENTITY_NAMES) : `; did you mean ${meant}?`;
  throw new UsageError(`--entity-type takes ${ENTITY_NAMES.join(", ")}, not ${JSON.stringify(text)}${near}`);
}
