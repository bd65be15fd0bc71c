// Which site of a mesh this page shows: nodes of different sites often have the same names. Asked of a route that every site answers, a
// standalone one too, which is none of a mesh.

import { effect, signal, untracked } from "@preact/signals";
import { isOpen, readBody, reader } from "./nodes.ts";
import { isVisible } from "./page.ts";
import { type ControllersAnswer, ownSiteIn } from "./sites.ts";

const AGAIN_AFTER_MS = 30_000;

/** Null: it is standalone, or not known yet. */
export const ownSite = signal<string | null>(null);

export function start(): void {
  let over = new AbortController();
  let before = reader.peek();
  effect(() => {
    over.abort();
    over = new AbortController();
    if (reader.value !== before) ownSite.value = null;
    before = reader.value;
    if (isOpen.value && isVisible.value) untracked(() => void keepAsking(over.signal));
  });
}

async function keepAsking(ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    try {
      const found = ownSiteIn((await readBody("/api/controllers", ended)) as ControllersAnswer);
      if (!ended.aborted) ownSite.value = found;
    } catch {
      // What is shown stays; the rest of the page says that nobody answers.
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS));
  }
}
