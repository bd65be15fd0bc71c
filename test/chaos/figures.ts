// Times as people want them: percentiles by nearest rank, so that each is a time that was really measured.

export interface Figures {
  readonly count: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
}

export function figuresOf(timesMs: readonly number[]): Figures {
  const sorted = timesMs.toSorted((a, b) => a - b);
  const rank = (part: number): number => round(sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN);
  return { count: sorted.length, p50_ms: rank(0.5), p99_ms: rank(0.99), max_ms: rank(1) };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
