// One link to another site, in either of its two shapes: the one that this site dialled (dialled-link.ts), and the one that another site dialled
// (served-link.ts). Both are driven by Links, and both report to it.

import type { LineId, Page } from "../../../core/mesh/model.ts";
import type { LinkId, SentOutcome } from "../../../core/mesh/spread/index.ts";
import type { Graft, PageOutcome } from "../../../ports/mesh/sites.ts";

/** What one side asks of the other: to be sent a line from a sequence on, or not any more. */
export type Wish =
  | { readonly kind: "graft"; readonly graft: Graft }
  | { readonly kind: "prune"; readonly line: LineId };

export interface LinkEnd {
  readonly id: LinkId;
  /** Who is at the other end. */
  readonly controller: string;
  /** Where that is, as far as this site calls there; null: it called. */
  readonly url: string | null;
  /** The time that a request and its answer took; null: not measured yet, or not here. */
  readonly roundTripMs: number | null;
  /** Consecutive pages of one line. Resolves when it is known what came of them. At most one `send` is under way. Rejects where the link broke. */
  send(pages: readonly Page[]): Promise<SentOutcome>;
  /** Wishes arrive in their order. */
  ask(wish: Wish): void;
  /** Once: nothing is sent or received any more. */
  close(): void;
}

export function endOf({ after, items }: Page): number {
  return after + items.length;
}

/** What a link reports. */
export interface LinkHost {
  /** Grows whenever this site begins to introduce itself with another ring. */
  readonly introductions: number;
  up(end: LinkEnd): void;
  /** Safe to call twice. */
  down(end: LinkEnd): void;
  /** Whether the site at the other end, which has answered, is dialled through another of its addresses already. */
  isDialled(end: Pick<LinkEnd, "id" | "controller">): boolean;
  /** `atMs`: the other side's wall clock, where it says it. Resolves when they are judged. */
  heads(end: LinkEnd, notes: readonly string[], atMs: number | null): Promise<void>;
  page(end: LinkEnd, page: unknown): Promise<PageOutcome>;
  wish(end: LinkEnd, wish: Wish): void;
}

/** Wishes that wait to be sent: the last one for each line, in the order of these. */
export class Wishes {
  readonly #byLine = new Map<LineId, Wish>();

  get isEmpty(): boolean {
    return this.#byLine.size === 0;
  }

  add(wish: Wish): void {
    const line = wish.kind === "graft" ? wish.graft.line : wish.line;
    this.#byLine.delete(line);
    this.#byLine.set(line, wish);
  }

  /** All of them, and forgets them. */
  take(): readonly Wish[] {
    const wishes = [...this.#byLine.values()];
    this.#byLine.clear();
    return wishes;
  }
}
