// Sites may know as many lines as the receipts keep, and show the head of each, with those of their own generations: whoever is shown them
// takes them all. A site that knew one line more than that would be refused by every peer, for ever: lines are never forgotten.

import { expect, test } from "vitest";
import { GENERATIONS_KEPT_MAX, PAGES_SENT_MAX } from "../../controller/mesh/limits.ts";
import { LINES_MAX } from "../../core/mesh/receipts/index.ts";
import { NOTE_LENGTH_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX } from "../../core/mesh/proof/limits.ts";
import { DELIVERY_BYTES_MAX, GRAFTS_MAX, HEADS_MAX, PAGES_PER_DELIVERY_MAX } from "./limits.ts";

/** Quotes, a comma, and a second byte for each of its line ends. */
const NOTE_IN_JSON_BYTES = 476 + 3 + 7;

test("a site that knows as many lines as it can shows all of its heads in one request, and asks for all of them", () => {
  expect(NOTE_LENGTH_MAX).toBeGreaterThanOrEqual(476);
  expect(HEADS_MAX).toBeGreaterThanOrEqual(LINES_MAX + GENERATIONS_KEPT_MAX);
  expect(GRAFTS_MAX).toBeGreaterThanOrEqual(LINES_MAX);
  expect(HEADS_MAX * NOTE_IN_JSON_BYTES).toBeLessThan(DELIVERY_BYTES_MAX);
});

test("the pages that a site sends together fit into one request", () => {
  expect(PAGES_SENT_MAX).toBe(PAGES_PER_DELIVERY_MAX);
  const notes = PAGES_SENT_MAX * (NOTE_LENGTH_MAX + NOTE_IN_JSON_BYTES);
  // In JSON every second byte of a text may be escaped.
  expect(2 * PAGE_BYTES_MAX + 4 * PAGE_ITEMS_MAX + notes).toBeLessThan(DELIVERY_BYTES_MAX);
});
