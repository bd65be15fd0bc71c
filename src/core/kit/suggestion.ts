// "Did you mean": the known names that a misspelt one is close to.

import { TYPO_DISTANCE_MAX, TYPO_LENGTH_MAX } from "./limits.ts";

/** "; did you mean …?", or nothing. Its question mark ends a sentence: see `sentenceEnd`. */
export function suggestion(name: string, known: readonly string[]): string {
  if (name.length > TYPO_LENGTH_MAX) return "";
  const near = known.filter(
    (one) => one !== name && distance(name.toLowerCase(), one.toLowerCase()) <= TYPO_DISTANCE_MAX,
  );
  return near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`;
}

/** What a sentence still lacks at its end: none has a full stop after a question mark. */
export function sentenceEnd(text: string): "" | "." {
  return text.endsWith("?") ? "" : ".";
}

/** Letters to insert, delete, change or swap with a neighbour. */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (rows[i - 1]?.[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min(changed, (rows[i - 1]?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (rows[i - 2]?.[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    rows.push(row);
  }
  return rows[a.length]?.[b.length] ?? 0;
}
