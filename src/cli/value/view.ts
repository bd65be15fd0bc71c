// Values as `tenure value` prints them. Pure.

import type { Json, StoredValue, ValueItem } from "../../client/index.ts";
import { assertNever } from "../../contract/errors.ts";
import { type Paint, PLAIN } from "../kit/colour.ts";
import { isoTime, json, printable, table, timeOrNull } from "../kit/output.ts";
import { VALUE_LETTERS_MAX } from "../limits.ts";

/** As JSON on one line, in which nothing moves a terminal's cursor: what could is escaped, and the JSON means the same. */
export function valueText(value: Json): string {
  return JSON.stringify(value).replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (letters) =>
    [...Array(letters.length).keys()]
      .map((at) => `\\u${letters.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

export function valueObject(one: StoredValue) {
  return { ...contentObject(one), pending_txn: one.pendingTxn ?? null };
}

/** A lock is no change: of what is watched it is not shown. */
function contentObject({ name, value, version, updatedAtMs, scope, epoch }: StoredValue) {
  return { name, value, version, updated_at: isoTime(updatedAtMs), scope: scope ?? null, epoch: epoch ?? null };
}

export function valuesTable(values: readonly StoredValue[], paint: Paint = PLAIN): string {
  const rows = values.map((one) => [
    printable(one.name),
    String(one.version),
    isoTime(one.updatedAtMs),
    fenceText(one),
    shortened(one.value),
  ]);
  return table(["NAME", "VERSION", "UPDATED", "WRITTEN BY", "VALUE"], rows, paint);
}

function fenceText({ scope, epoch }: Pick<StoredValue, "scope" | "epoch">): string {
  return scope === undefined ? "-" : `epoch ${epoch} of ${printable(scope)}`;
}

function shortened(value: Json): string {
  const text = valueText(value);
  return text.length > VALUE_LETTERS_MAX ? `${text.slice(0, VALUE_LETTERS_MAX)}…` : text;
}

/** One line; null: there is nothing to show. */
export function itemText(item: ValueItem, isJson: boolean): string | null {
  switch (item.kind) {
    case "put": {
      const { kind } = item;
      if (isJson) return json({ kind, ...contentObject(item) });
      return `${isoTime(item.updatedAtMs)}  ${item.version}  ${printable(item.name)}  ${valueText(item.value)}\n`;
    }
    case "deleted": {
      const { kind, name, version } = item;
      if (isJson) return json({ kind, name, version, updated_at: timeOrNull(item.updatedAtMs) });
      return `${timeOrNull(item.updatedAtMs) ?? "-"}  ${version ?? "-"}  ${printable(name)}  deleted\n`;
    }
    case "current":
      return isJson ? json(item) : null;
    default:
      return assertNever(item, "a change of a value");
  }
}
