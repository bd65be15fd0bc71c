// For which site of the mesh a caller may act: the one in its certificate, or the one that its key is named after. An operator may act for
// any; so may whoever is let in without a key, on loopback.

import { parseSpiffeId } from "../../core/kit/spiffe.ts";
import type { Caller } from "../traffic/callers.ts";
import { Refusal } from "../refusal.ts";

/** Null: any. */
export function siteOf({ how, name, role }: Caller): string | null {
  if (role !== "controller") return null;
  return how === "certificate" ? (parseSpiffeId(name)?.name ?? "") : name;
}

/** Throws PERMISSION_DENIED where the caller is another site. */
export function requireSite(caller: Caller, id: string): void {
  const own = siteOf(caller);
  if (own === null || own === id) return;
  const what = caller.how === "certificate" ? "The certificate" : "The key";
  throw new Refusal("PERMISSION_DENIED", `${what} is of the site ${JSON.stringify(own)}, and may not act for ${id}.`);
}
