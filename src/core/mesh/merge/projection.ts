// The merged state over a store of rows: takes events of any line, keeps the rows and, for each line, the sum of their hashes.
//
// Invariants:
// - Rows and sums depend on the set of events that were applied, not on their order and not on how often each came.
// - A row that is gone (forgotten, removed) counts for nothing. Its store may drop it if each line's events come in order, because nothing
//   before that place can come again then; otherwise it must keep it.
// - Lines that are marked (forked, evicted) are kept, and are not in the hash.

import { canonicalJson } from "../../events/index.ts";
import { assertNever } from "../../kit/assert.ts";
import type { Json } from "../../kit/json.ts";
import { parseJson } from "../../kit/parse-json.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { LineId } from "../model.ts";
import { type AgentRow, evolveAgentRow, isAgentGone } from "./agent-row.ts";
import { type ControllerRow, evolveControllerRow } from "./controller-row.ts";
import { type LineEvent, siteOf } from "./events.ts";
import { integerOf, member, textOf } from "./fields.ts";
import { evolveJobRow, isGone, type JobWords } from "./job-row.ts";
import { NAME_LENGTH_MAX } from "./limits.ts";
import { rowHash, RowSum } from "./row-sum.ts";

export type Row =
  | { readonly kind: "job"; readonly row: JobWords }
  | { readonly kind: "agent"; readonly row: AgentRow }
  | { readonly kind: "controller"; readonly row: ControllerRow };
export type RowKind = Row["kind"];

export interface RowStore {
  /** The text of the row as it was set; null: there is none. */
  get(kind: RowKind, line: LineId, id: string): string | null;
  set(row: Row, text: string, isGone: boolean): void;
  /** Of the hashes of a line's rows (RowSum.hex); null: none yet. */
  sum(line: LineId): string | null;
  setSum(line: LineId, sum: string): void;
  /** A later generation of the same site continues after `through`: of several the lowest counts. */
  ended(line: LineId, through: number): void;
}

const KINDS: Readonly<Record<string, RowKind>> = { build: "job", worker: "agent", controller: "controller" };

export class Projection {
  readonly #store: RowStore;
  readonly #digest: Pick<Digest, "sha256Hex">;

  constructor(store: RowStore, digest: Pick<Digest, "sha256Hex">) {
    this.#store = store;
    this.#digest = digest;
  }

  /** Never throws for what an event says. */
  apply(said: LineEvent): void {
    const { eventType, entityId } = said.event;
    if (eventType === "controller:recovered") this.#recovered(said);
    const entity = eventType.slice(0, eventType.indexOf(":"));
    const kind = Object.hasOwn(KINDS, entity) ? KINDS[entity] : undefined;
    if (kind === undefined) return;
    const text = this.#store.get(kind, said.line, entityId);
    const before = text === null ? null : rowOf(kind, text);
    const next = evolve(kind, before, said);
    if (next === null || next.row === before?.row) return;
    const nextText = canonicalJson(next.row as unknown as Json);
    const sum = RowSum.of(this.#store.sum(said.line) ?? EMPTY_SUM);
    if (before !== null && !isOver(before)) sum.subtract(hashOf(before, text as string, this.#digest));
    if (!isOver(next)) sum.add(hashOf(next, nextText, this.#digest));
    this.#store.set(next, nextText, isOver(next));
    this.#store.setSum(said.line, sum.hex());
  }

  /** Only a site itself can end a generation of its own. */
  #recovered({ line, event }: LineEvent): void {
    const ended = textOf(member(event.payload, "line"), NAME_LENGTH_MAX);
    const through = integerOf(member(event.payload, "through"), 0);
    if (ended === null || through === null || ended === line || siteOf(ended) !== siteOf(line)) return;
    this.#store.ended(ended, through);
  }
}

export const EMPTY_SUM = new RowSum().hex();

/** Over the sums of all lines that are not marked. */
export function projectionHash(sums: Iterable<string>): string {
  const total = new RowSum();
  for (const sum of sums) total.add(sum);
  return total.hex();
}

/** What a row that was set with this text adds to the sum of its line, unless it is gone. Throws where the text is no JSON. */
export function rowTextHash(kind: RowKind, text: string, digest: Pick<Digest, "sha256Hex">): string {
  return hashOf(rowOf(kind, text), text, digest);
}

/** Where something was forgotten is not part of it: a store that drops rows that are gone has the same hash. */
function hashOf({ kind, row }: Row, text: string, digest: Pick<Digest, "sha256Hex">): string {
  const isPlain = kind === "controller" || row.gone === null;
  return rowHash(kind, isPlain ? text : canonicalJson({ ...row, gone: null } as unknown as Json), digest);
}

function rowOf(kind: RowKind, text: string): Row {
  return { kind, row: parseJson(text) } as Row;
}

function isOver(row: Row): boolean {
  switch (row.kind) {
    case "job":
      return isGone(row.row);
    case "agent":
      return isAgentGone(row.row);
    case "controller":
      return false;
    default:
      return assertNever(row, "row");
  }
}

function evolve(kind: RowKind, before: Row | null, said: LineEvent): Row | null {
  const old = before === null ? null : before.row;
  switch (kind) {
    case "job":
      return wrapped("job", evolveJobRow(old as JobWords | null, said));
    case "agent":
      return wrapped("agent", evolveAgentRow(old as AgentRow | null, said));
    case "controller":
      return wrapped("controller", evolveControllerRow(old as ControllerRow | null, said));
    default:
      return assertNever(kind, "kind of row");
  }
}

function wrapped(kind: RowKind, row: Row["row"] | null): Row | null {
  return row === null ? null : ({ kind, row } as Row);
}
