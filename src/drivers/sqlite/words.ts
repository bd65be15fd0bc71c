// The words by which jobs are found: letters and digits, in lower case, without accents. Jobs and searches are cut into
// words here and nowhere else, and SQLite is given the result with its plainest tokenizer: what two tokenizers disagree
// about can't be found.

import type { Job } from "../../core/jobs/model.ts";
import type { Json } from "../../core/kit/json.ts";
import { JOB_TEXT_LENGTH_MAX, JOB_WORDS_MAX, SEARCH_WORDS_MAX, WORD_LENGTH_MAX, PAYLOAD_DEPTH_MAX } from "./limits.ts";

/** Words of kind, queue, labels, payload and error, each once, parted by blanks. */
export function wordsOfJob(job: Pick<Job, "spec" | "error">): string {
  const words = new WordSet(JOB_WORDS_MAX, JOB_TEXT_LENGTH_MAX);
  words.add(job.spec.kind);
  words.add(job.spec.queue);
  for (const [name, value] of Object.entries(job.spec.labels)) {
    words.add(name);
    words.add(value);
  }
  // Before the payload, which may use up the room.
  if (job.error !== null) words.add(job.error.message);
  words.addJson(job.spec.payload, 0);
  if (job.error !== null) words.addJson(job.error.detail, 0);
  return words.text();
}

/** Words of these texts, each once, parted by blanks. */
export function wordsOf(texts: Iterable<string | null>): string {
  const words = new WordSet(JOB_WORDS_MAX, JOB_TEXT_LENGTH_MAX);
  for (const text of texts) if (text !== null) words.add(text);
  return words.text();
}

/** As an expression of FTS5; null where there is no word in it. */
export function matchOf(search: string): string | null {
  const words = new WordSet(SEARCH_WORDS_MAX, SEARCH_WORDS_MAX * WORD_LENGTH_MAX * 4);
  words.add(search);
  const text = words.text();
  return text === "" ? null : `"${text.replaceAll(" ", '" "')}"`;
}

class WordSet {
  readonly #words = new Set<string>();
  readonly #wordsMax: number;
  #lengthLeft: number;

  constructor(wordsMax: number, lengthMax: number) {
    this.#wordsMax = wordsMax;
    this.#lengthLeft = lengthMax;
  }

  add(text: string): void {
    if (this.#isFull()) return;
    const cut = text.length > this.#lengthLeft ? text.slice(0, this.#lengthLeft) : text;
    this.#lengthLeft -= cut.length;
    for (const word of split(cut)) {
      if (this.#words.size >= this.#wordsMax) return;
      this.#words.add(word.length > WORD_LENGTH_MAX ? word.slice(0, WORD_LENGTH_MAX) : word);
    }
  }

  /** Strings and numbers, not the names of fields: those are the same in all jobs of a kind. */
  addJson(value: Json, depth: number): void {
    if (value === null || depth > PAYLOAD_DEPTH_MAX || this.#isFull()) return;
    if (typeof value === "string") this.add(value);
    else if (typeof value === "number") this.add(String(value));
    else if (typeof value === "object") for (const inner of Object.values(value)) this.addJson(inner, depth + 1);
  }

  text(): string {
    return [...this.#words].join(" ");
  }

  #isFull(): boolean {
    return this.#lengthLeft <= 0 || this.#words.size >= this.#wordsMax;
  }
}

function split(text: string): readonly string[] {
  const lower = text.toLowerCase();
  // oxlint-disable-next-line no-control-regex
  if (/^[\u0000-\u007f]*$/.test(lower)) return lower.match(/[a-z0-9]+/g) ?? [];
  const plain = lower
    .normalize("NFKD")
    .replaceAll(/\p{M}+/gu, "")
    .toLowerCase();
  return plain.match(/[\p{L}\p{N}]+/gu) ?? [];
}
