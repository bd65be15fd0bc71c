// Commands about jobs: what happens, if anything. It looks at the book's head and changes nothing; the caller seals the
// drafts and proposes them in the same turn, so that no two decisions rest on the same head (design D11).
//
// A refusal has no drafts. Neither has what is so already; its answer too may leave only when the head it rests on is
// committed.

import { assertNever } from "../../kit/assert.ts";
import type { JobsBook } from "../state/book.ts";
import type { CommandOf, DecideContext, Decision, JobsAnswers, JobsCommand, JobsCommandKind } from "../commands.ts";
import {
  decideAgentOffline,
  decideDrainAgent,
  decideHandBack,
  decideLeaseExpired,
  decideRemoveAgent,
  decideTakeBack,
  decideTimedOut,
} from "./agents.ts";
import { decideCancel, decideForget, decideRetry, decideSubmit } from "./jobs.ts";
import { decideLease } from "./lease.ts";
import { decideTake } from "./take.ts";
import { decideDeliver } from "./deliver.ts";
import { decideReport, decideResults } from "./results.ts";
import { decideDeleteSchedule, decideFireSchedule, decidePauseQueue, decidePutSchedule } from "./schedules.ts";

export function decide<Kind extends JobsCommandKind>(
  book: JobsBook,
  command: CommandOf<Kind>,
  context: DecideContext,
): Decision<JobsAnswers[Kind]> {
  // One branch answers for one kind; the compiler can't follow that from the command to the answer.
  return anyDecision(book, command, context) as Decision<JobsAnswers[Kind]>;
}

function anyDecision(
  { state }: JobsBook,
  command: JobsCommand,
  context: DecideContext,
): Decision<JobsAnswers[JobsCommandKind]> {
  switch (command.kind) {
    case "submit":
      return decideSubmit(state, command, context);
    case "take":
      return decideTake(state, command, context);
    case "deliver":
      return decideDeliver(state, command, context);
    case "cancel":
      return decideCancel(state, command, context);
    case "retry":
      return decideRetry(state, command, context);
    case "lease":
      return decideLease(state, command, context);
    case "take-back":
      return decideTakeBack(state, command, context);
    case "report":
      return decideReport(state, command, context);
    case "results":
      return decideResults(state, command, context);
    case "lease-expired":
      return decideLeaseExpired(state, command, context);
    case "attempt-timed-out":
      return decideTimedOut(state, command, context);
    case "agent-offline":
      return decideAgentOffline(state, command, context);
    case "remove-agent":
      return decideRemoveAgent(state, command, context);
    case "drain-agent":
      return decideDrainAgent(state, command, context);
    case "hand-back":
      return decideHandBack(state, command, context);
    case "pause-queue":
      return decidePauseQueue(state, command, context);
    case "put-schedule":
      return decidePutSchedule(state, command, context);
    case "delete-schedule":
      return decideDeleteSchedule(state, command, context);
    case "fire-schedule":
      return decideFireSchedule(state, command, context);
    case "forget":
      return decideForget(state, command, context);
    default:
      return assertNever(command, "command about jobs");
  }
}
