// `tenure schedule list|show|put|delete`: the schedules of Tenure's servers, which submit jobs by the clock.

import { SCHEDULE } from "./help.ts";
import type { ScheduleRequest } from "../../client/index.ts";
import { assertNever } from "../../contract/errors.ts";
import { clientOf, FRESH, readConnection } from "../connection/connection.ts";
import { readJsonFile, readPayload } from "../files/payload.ts";
import { listText } from "../kit/list-output.ts";
import { json, LIST_OUTPUTS, OUTPUTS, printable } from "../kit/output.ts";
import { readScheduleFlags, type ScheduleStep } from "./flags.ts";
import { scheduleObject, scheduleOfFile, schedulesTable, scheduleText } from "./view.ts";
import { named } from "../kit/words.ts";
import { printed, stdoutPaint } from "../kit/print.ts";

export async function schedule(args: readonly string[]): Promise<number> {
  const flags = readScheduleFlags(args);
  if (flags === "help") return printed(SCHEDULE.help);
  const { step } = flags;
  const connection = await readConnection(flags.connection, process.env, step.verb === "list" ? LIST_OUTPUTS : OUTPUTS);
  const client = clientOf(connection);
  const isJson = connection.output === "json";
  switch (step.verb) {
    case "list": {
      const all = await client.schedules(FRESH);
      const text = listText(connection.output, "schedules", all.map(scheduleObject), () =>
        schedulesTable(all, stdoutPaint()),
      );
      return printed(text);
    }
    case "show": {
      const one = named("schedule", step.name, await client.schedules(FRESH));
      return printed(isJson ? json(scheduleObject(one)) : scheduleText(one));
    }
    case "put":
    case "put-file":
      await client.putSchedule(step.name, await requestOf(step));
      return printed(isJson ? json({ name: step.name }) : `${step.name} is put\n`);
    case "delete":
      await client.deleteSchedule(step.name);
      return printed(isJson ? json({ name: step.name }) : `${printable(step.name)} is deleted\n`);
    default:
      return assertNever(step, "schedule");
  }
}

async function requestOf(step: Extract<ScheduleStep, { verb: "put" | "put-file" }>): Promise<ScheduleRequest> {
  if (step.verb === "put-file") return scheduleOfFile(`--file ${step.file}`, await readJsonFile("--file", step.file));
  const { request, payloadFile } = step;
  if (payloadFile === null) return request;
  return { ...request, spec: { ...request.spec, payload: await readPayload(payloadFile) } };
}
