// What `tenure event` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { ENTITY_TYPES } from "../../core/events/names.ts";
import { CONNECTION_HELP, LISTS } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const EVENT = describe(
  "event",
  "everything that happens there, sealed: tail, verify",
  `tenure event VERB [--url URL[,URL…]] [-o table|json|jsonl]: everything that happens to jobs, agents, queues,
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
69 no server answers, the events after --after are no longer kept, or the history was rewritten (HISTORY_REWRITTEN: the message says after which event to start again); 74 verify: a history is broken, or two differ; 75 verify: a node
verifies already; 77 the key may not do this; 78 a certificate that is not trusted (--ca) or can't be used (docs/errors.md);
130 and 143 ended by SIGINT or SIGTERM
`,
  { lists: ["type"], offers: { ...LISTS, "--entity-type": ENTITY_TYPES } },
);
