// `tenure queue list|pause|resume`: the queues of Tenure's servers. A queue exists by its name: one that nobody has used yet can
// be paused too, before the first job comes.

import { CONNECTION_KINDS } from "../kit/connection-help.ts";
import { verbsOf } from "../kit/description.ts";
import { QUEUE } from "./help.ts";
import type { Client, QueueView } from "../../client/index.ts";
import { assertNever, TenureError } from "../../contract/errors.ts";
import { clientOf, FRESH, readConnection, type StepFlags } from "../connection/connection.ts";
import { parseFlags, suggestion } from "../kit/flags.ts";
import { listText } from "../kit/list-output.ts";
import { type Paint, paintState, PLAIN } from "../kit/colour.ts";
import { json, LIST_OUTPUTS, OUTPUTS, printable, withLongOutput, table } from "../kit/output.ts";
import { chosen, noName, oneName } from "../kit/words.ts";
import { printed, stdoutPaint, warn } from "../kit/print.ts";

const VERBS = verbsOf(QUEUE);
/** Where a job waits that names no queue: it may be meant before there is any. */
const QUEUE_DEFAULT = "default";

export type QueueStep = { readonly verb: "list" } | { readonly verb: "pause" | "resume"; readonly name: string };

export async function queue(args: readonly string[]): Promise<number> {
  const flags = readQueueFlags(args);
  if (flags === "help") return printed(QUEUE.help);
  const { step } = flags;
  const connection = await readConnection(flags.connection, process.env, step.verb === "list" ? LIST_OUTPUTS : OUTPUTS);
  const client = clientOf(connection);
  const isJson = connection.output === "json";
  switch (step.verb) {
    case "list": {
      const queues = await client.queues(FRESH);
      return printed(
        listText(connection.output, "queues", queues.map(queueObject), () => queuesTable(queues, stdoutPaint())),
      );
    }
    case "pause":
      await client.pauseQueue(step.name);
      process.stdout.write(isJson ? json({ name: step.name, paused: true }) : `${printable(step.name)} is paused\n`);
      await tellStranger(client, step.name);
      return 0;
    case "resume":
      await client.resumeQueue(step.name);
      process.stdout.write(isJson ? json({ name: step.name, paused: false }) : `${printable(step.name)} goes on\n`);
      await tellStranger(client, step.name);
      return 0;
    default:
      return assertNever(step, "queue");
  }
}

async function tellStranger(client: Client, name: string): Promise<void> {
  const text = await strangerText(client, name).catch((error: unknown) => {
    // What was asked for is done, whatever becomes of the look after it.
    if (TenureError.is(error)) return null;
    throw error;
  });
  if (text !== null) warn(text);
}

/** Null for a queue that a job has, or had while it is kept, or a schedule. Others are meant for jobs to come, or mistyped. */
export async function strangerText(
  client: Pick<Client, "queues" | "schedules" | "jobs">,
  name: string,
): Promise<string | null> {
  if (name === QUEUE_DEFAULT) return null;
  const queues = await client.queues(FRESH);
  if (queues.some((one) => one.queue === name && one.pending + one.running > 0)) return null;
  const scheduled = (await client.schedules()).map(({ spec }) => spec.queue);
  if (scheduled.includes(name)) return null;
  const finished = await client.jobs({ queue: name, pageSize: 1 }).next();
  if (finished.done !== true) return null;
  const others = new Set([QUEUE_DEFAULT, ...queues.map((one) => one.queue), ...scheduled]);
  // Paused by mistake, it is among them itself.
  others.delete(name);
  const near = suggestion(name, [...others]);
  return `no job is in the queue ${name}${near === "" ? ", and no schedule has it" : near}`;
}

export function readQueueFlags(args: readonly string[]): StepFlags<QueueStep> | "help" {
  const { values, words: before, rest } = parseFlags(withLongOutput(args), CONNECTION_KINDS);
  if (values.help !== undefined) return "help";
  const words = [...before, ...(rest ?? [])];
  const verb = chosen(words[0], VERBS);
  if (verb !== "list") return { step: { verb, name: oneName("queue", words) }, connection: values };
  noName(words);
  return { step: { verb }, connection: values };
}

export function queueObject({ queue: name, paused, pending, running }: QueueView) {
  return { name, paused, pending, running };
}

export function queuesTable(queues: readonly QueueView[], paint: Paint = PLAIN): string {
  const rows = queues.map(({ queue: name, paused, pending, running }) => [
    printable(name),
    paintState(paused ? "paused" : "open", paint),
    String(pending),
    String(running),
  ]);
  return table(["NAME", "STATE", "PENDING", "RUNNING"], rows, paint);
}
