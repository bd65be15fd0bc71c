// Which island is meant. A backend hash names it everywhere; the URL under which it is registered, only as far as the registry has it now.

import { TenureError } from "../../contract/errors.ts";
import type { Caller, CallOptions } from "../caller.ts";
import type { BackendsView } from "../coordinators/views.ts";

const HASH = /^[0-9a-f]{64}$/;

/** The backend hash of each. Asks only where there is one that is none. Throws BAD_REQUEST where an island is not registered. */
export async function hashesOf(
  caller: Caller,
  islands: readonly string[],
  options: CallOptions,
): Promise<(island: string) => string> {
  const known = new Map(islands.filter((island) => HASH.test(island)).map((hash) => [hash, hash]));
  const named = islands.filter((island) => !known.has(island));
  if (named.length > 0) {
    const { backends } = await caller.readJson<BackendsView>("/v1/tc/rm/list", options);
    for (const island of named) {
      const origin = originOf(island);
      const found = backends.find(({ endpoints }) => endpoints.some((url) => originOf(url) === origin));
      if (origin === null || found === undefined) throw notRegistered(island, backends);
      known.set(island, found.backendHash);
    }
  }
  return (island) => known.get(island) as string;
}

function originOf(url: string): string | null {
  const { origin = "null" } = URL.parse(url) ?? {};
  return origin === "null" ? null : origin;
}

function notRegistered(island: string, backends: BackendsView["backends"]): TenureError {
  const urls = backends.flatMap(({ endpoints }) => endpoints).join(", ");
  const there = urls === "" ? "none is registered" : `registered are ${urls}`;
  const text = `${JSON.stringify(island)} is neither a backend hash nor the URL of a registered island; ${there}. Nothing was sent.`;
  return new TenureError("BAD_REQUEST", text, { field: "island" });
}
