// Values, read page by page. What is not asked for otherwise is linearizable.

import { TenureError } from "../../contract/errors.ts";
import { type Caller, type CallOptions, readQuery } from "../caller.ts";
import { VALUE_PAGES_MAX } from "../limits.ts";
import type { StoredValue } from "../../ports/stored-values.ts";

export interface ValueReadOptions extends CallOptions {
  /**
   * "linearizable" (default): everything that was confirmed before this call is in the answer, so a new leader never starts from an old cursor.
   * "local": as whichever node answers first has it, also while nobody leads.
   */
  readonly consistency?: "linearizable" | "local" | undefined;
}

export interface Page {
  readonly values: readonly StoredValue[];
  readonly next: string | null;
  readonly asOf: number;
}

export async function* pagesOf(
  caller: Caller,
  options: ValueReadOptions,
  prefix = "",
): AsyncGenerator<Page, void, void> {
  let after: string | null = null;
  for (let page = 0; page < VALUE_PAGES_MAX; page++) {
    const found: Page = await readPage(caller, options, after === null ? { prefix } : { prefix, after });
    yield found;
    if (found.next === null) return;
    if (found.next === after) break;
    after = found.next;
  }
  throw new TenureError("BACKEND_UNSUPPORTED", "the server lists values without an end; is it a Tenure server?");
}

export async function readPage(
  caller: Caller,
  { consistency = "linearizable", ...options }: ValueReadOptions,
  query: Readonly<Record<string, string>>,
): Promise<Page> {
  const wanted = consistency === "local" ? undefined : consistency;
  return await caller.readJson<Page>(`/v1/values${readQuery({ consistency: wanted }, query)}`, options);
}
