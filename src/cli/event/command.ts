// `tenure event tail|verify`: the log of events, followed as it grows, and checked on every node.

import { EVENT } from "./help.ts";
import { assertNever } from "../../contract/errors.ts";
import type { Client, EventView } from "../../client/index.ts";
import { HistoryRewrittenError, isThere, type KnownPoint } from "../../client/rewritten.ts";
import {
  callerOf,
  clientOf,
  type Connection,
  historyOf,
  readConnection,
  refuseStrangers,
} from "../connection/connection.ts";
import { readEventFlags, type TailStep } from "./flags.ts";
import { compareNodes, problemOf, verifyNodes } from "./verify.ts";
import { verifyNotes, verifyObject, verifyText } from "./verify-view.ts";
import { eventLine, isWanted } from "./view.ts";
import { json, LIST_OUTPUTS, OUTPUTS } from "../kit/output.ts";
import { untilSignal } from "../kit/until-signal.ts";
import { drained, printed } from "../kit/print.ts";

export async function event(args: readonly string[]): Promise<number> {
  const flags = readEventFlags(args);
  if (flags === "help") return printed(EVENT.help);
  const { step } = flags;
  const connection = await readConnection(flags.connection, process.env, step.verb === "tail" ? LIST_OUTPUTS : OUTPUTS);
  const end = untilSignal();
  try {
    switch (step.verb) {
      case "tail":
        await tail(connection, step, end.signal);
        return 0;
      case "verify":
        return await verify(connection, end.signal);
      default:
        return assertNever(step, "event");
    }
  } catch (error) {
    if (!end.signal.aborted) throw error;
    return end.code;
  }
}

async function tail(connection: Connection, step: TailStep, signal: AbortSignal): Promise<void> {
  const client = clientOf(connection);
  const { output } = connection;
  let left = step.limit;
  for await (const one of step.isFollowed
    ? client.events({ ...step, signal })
    : present(connection, client, step, signal)) {
    // A reader that is slower than the log must not let it pile up here.
    if (!process.stdout.write(eventLine(output, one))) await drained(signal);
    if (--left === 0) return;
  }
}

/** Unfiltered, for the last event that there is now may be one that a filter would hide. */
async function* present(
  connection: Connection,
  client: Client,
  step: TailStep,
  signal: AbortSignal,
): AsyncGenerator<EventView, void, void> {
  const { firstSequence, lastSequence } = await client.stats({ consistency: "linearizable", signal });
  const after = step.after ?? firstSequence - 1;
  const { afterHash } = step;
  if (after === lastSequence) {
    // No event will come whose predecessor would be compared.
    if (afterHash !== undefined) await mustHave(connection, { sequence: after, hash: afterHash }, signal);
    return;
  }
  for await (const one of client.events({ after, afterHash, signal })) {
    if (isWanted(step, one)) yield one;
    if (one.sequence >= lastSequence) return;
  }
}

async function mustHave(connection: Connection, point: KnownPoint, signal: AbortSignal): Promise<void> {
  if ((await isThere(callerOf(connection), point, signal)) === "no") throw new HistoryRewrittenError(point, null);
}

async function verify(connection: Connection, signal: AbortSignal): Promise<number> {
  const answers = await clientOf(connection).nodes({ signal });
  refuseStrangers(answers);
  const history = historyOf(
    connection,
    answers.map(({ url }) => url),
  );
  const nodes = await verifyNodes(answers, history, { signal });
  const difference = await compareNodes(nodes, history, { signal });
  const problem = problemOf(nodes, difference);
  const isJson = connection.output === "json";
  process.stdout.write(isJson ? json(verifyObject(nodes, difference, problem)) : verifyText(nodes, difference));
  for (const note of verifyNotes(answers)) process.stderr.write(`tenure: ${note}\n`);
  if (problem !== null) throw problem;
  return 0;
}
