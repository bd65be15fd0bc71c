// Which other nodes this page may connect to: its content security policy names the members that its node knew when the page
// was loaded. A node that has just started does not know all of them, and members join later: then the page loads itself
// again, which keeps all that its URL says, and is not done more than twice a minute.

import { recall, remember } from "./storage.ts";

const RELOAD_EVERY_MS = 30_000;
const ASK_EVERY_MS = 5_000;
const RELOADED_NAME = "tenure-reloaded";

/** Null: nobody could say. Then all are tried, and the browser refuses what it must. */
type Allowed = ReadonlySet<string> | null;

const atLoad: Promise<Allowed> = allowedNow();
const askedAtMs = new Map<string, number>();

export async function mayConnect(origin: string): Promise<boolean> {
  const allowed = await atLoad;
  if (allowed === null || origin === location.origin || allowed.has(origin)) return true;
  if (performance.now() - (askedAtMs.get(origin) ?? Number.NEGATIVE_INFINITY) < ASK_EVERY_MS) return false;
  askedAtMs.set(origin, performance.now());
  if ((await allowedNow())?.has(origin) === true) reload();
  return false;
}

async function allowedNow(): Promise<Allowed> {
  try {
    const { headers } = await fetch("/", { method: "HEAD", cache: "no-store" });
    const policy = headers.get("content-security-policy") ?? "";
    const connect = policy.split("; ").find((part) => part.startsWith("connect-src "));
    return connect === undefined ? null : new Set(connect.split(" ").slice(1));
  } catch {
    return null;
  }
}

function reload(): void {
  if (Date.now() - Number(recall(RELOADED_NAME) ?? 0) < RELOAD_EVERY_MS) return;
  remember(RELOADED_NAME, String(Date.now()));
  location.reload();
}
