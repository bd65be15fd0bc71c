// The page's own state: what its URL says, the reader's key, whether it is looked at, its clock.

import { effect, signal } from "@preact/signals";
import { type Address, formatAddress, keyOf, parseAddress } from "./address.ts";
import { recall, remember } from "./storage.ts";

const KEY_NAME = "tenure-key";
const CLOCK_MS = 1_000;

export const address = signal<Address>(parseAddress(location.search));
/** Sent as X-API-Key; "" where none is given. It lives as long as the tab. */
export const key = signal(takeKey() ?? recall(KEY_NAME) ?? "");
/** A page that nobody sees asks for nothing: a browser has six connections for each server, in all tabs together. */
export const isVisible = signal(document.visibilityState !== "hidden");
/** The wall clock, each second. */
export const now = signal(Date.now());

export function start(): void {
  addEventListener("popstate", () => (address.value = parseAddress(location.search)));
  addEventListener("hashchange", () => {
    const given = takeKey();
    if (given !== null) key.value = given;
  });
  document.addEventListener("visibilitychange", () => (isVisible.value = document.visibilityState !== "hidden"));
  setInterval(() => (now.value = Date.now()), CLOCK_MS);
  effect(() => remember(KEY_NAME, key.value));
}

/** Out of the address at once: nobody is to send it to somebody with the link. */
function takeKey(): string | null {
  const given = keyOf(location.hash);
  if (given !== null) history.replaceState(null, "", location.pathname + location.search);
  return given;
}

/** A new place in the history, for what the reader opens; none while they type. */
export function go(change: Partial<Address>, how: "push" | "replace" = "push"): void {
  const next = { ...address.value, ...change };
  const url = formatAddress(next);
  if (url === formatAddress(address.value)) return;
  if (how === "push") history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  address.value = next;
}
