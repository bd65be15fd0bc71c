// `tenure value get|put|delete|list|watch`: small JSON documents on Tenure's servers, which a leader writes only while its epoch is in force.

import type { Client, StoredValue } from "../../client/index.ts";
import { assertNever, TenureError } from "../../contract/errors.ts";
import { clientOf, type Connection, readConnection } from "../connection/connection.ts";
import { readValue } from "../files/payload.ts";
import { listText } from "../kit/list-output.ts";
import { json, LIST_OUTPUTS, OUTPUTS, printable } from "../kit/output.ts";
import { drained, printed, stdoutPaint } from "../kit/print.ts";
import { untilSignal } from "../kit/until-signal.ts";
import { readValueFlags, type ValueConditions, type ValueStep } from "./flags.ts";
import { VALUE } from "./help.ts";
import { itemText, valueObject, valuesTable, valueText } from "./view.ts";

export async function value(args: readonly string[]): Promise<number> {
  const flags = readValueFlags(args, process.env);
  if (flags === "help") return printed(VALUE.help);
  const { step } = flags;
  const isMany = step.verb === "list" || step.verb === "watch";
  const connection = await readConnection(flags.connection, process.env, isMany ? LIST_OUTPUTS : OUTPUTS);
  return step.verb === "watch" ? await watch(connection, step) : await answer(connection, step);
}

async function answer(connection: Connection, step: Exclude<ValueStep, { verb: "watch" }>): Promise<number> {
  const { values } = clientOf(connection);
  const isJson = connection.output === "json";
  switch (step.verb) {
    case "get": {
      const found = await values.get(step.name);
      if (found === null) throw new TenureError("NOT_FOUND", `there is no value ${JSON.stringify(step.name)}.`);
      return printed(isJson ? json(valueObject(found)) : `${valueText(found.value)}\n`);
    }
    case "put": {
      const { name, conditions } = step;
      const { version } = await values.put(name, step.value === null ? await readValue() : step.value.json, conditions);
      if (isJson) return printed(json({ name, version, ...fenceOf(conditions) }));
      return printed(`${printable(name)} is written, version ${version}${underText(conditions)}\n`);
    }
    case "delete": {
      const { name, conditions } = step;
      const { deleted, version } = await values.delete(name, conditions);
      if (isJson) return printed(json({ name, deleted, version, ...fenceOf(conditions) }));
      const text = deleted ? `is deleted, version ${version}${underText(conditions)}` : "was not there";
      return printed(`${printable(name)} ${text}\n`);
    }
    case "list": {
      const all = await listed(values, step.prefix);
      return printed(
        listText(connection.output, "values", all.map(valueObject), () => valuesTable(all, stdoutPaint())),
      );
    }
    default:
      return assertNever(step, "value");
  }
}

async function listed(values: Client["values"], prefix: string | undefined): Promise<readonly StoredValue[]> {
  const all: StoredValue[] = [];
  for await (const one of values.list({ prefix })) all.push(one);
  return all;
}

function fenceOf({ scope, epoch }: ValueConditions) {
  return { scope: scope ?? null, epoch: epoch ?? null };
}

/** Said, for it may come from variables that nobody thinks of. */
function underText({ scope, epoch }: ValueConditions): string {
  return scope === undefined ? "" : `, in epoch ${epoch} of ${printable(scope)}`;
}

async function watch(
  connection: Connection,
  { prefix, after }: Extract<ValueStep, { verb: "watch" }>,
): Promise<number> {
  const end = untilSignal();
  const { signal } = end;
  try {
    for await (const item of clientOf(connection).values.watch({ prefix, after, signal })) {
      const text = itemText(item, connection.output !== "table");
      // A reader that is slower than the changes must not let them pile up here.
      if (text !== null && !process.stdout.write(text)) await drained(signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return end.code;
}
