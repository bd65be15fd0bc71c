// The time that processes have spent on a processor, by what their threads do: microseconds, from /proc, so Linux only.

import { readdirSync, readFileSync } from "node:fs";

/** Of a thread's name; the rest is counted under the name itself. */
const PARTS: readonly (readonly [RegExp, string])[] = [
  [/^node-MainThread$|^node$|^MainThread$/, "main"],
  [/V8Worker|^DelayedTask/, "V8 (collector, compiler)"],
  [/^libuv-worker$/, "files"],
  [/^views/, "views (SQLite)"],
  [/^postgres$/, "PostgreSQL"],
];

const KIB_PER_MIB = 1024;
/** Linux counts in hundredths of a second here, on every machine that Node runs on. */
const US_PER_TICK = 10_000;

export type ProcessorTime = ReadonlyMap<string, number>;

/** `label` is before each part. A process that is gone counts for nothing. */
export function processorTimeOf(processes: readonly { readonly label: string; readonly pid: number }[]): ProcessorTime {
  const times = new Map<string, number>();
  const add = (key: string, us: number): void => void times.set(key, (times.get(key) ?? 0) + us);
  for (const { label, pid } of processes) {
    for (const thread of listed(`/proc/${pid}/task`)) {
      const [name, stat] = [`comm`, `schedstat`].map((file) => read(`/proc/${pid}/task/${thread}/${file}`).trim());
      const part = PARTS.find(([pattern]) => pattern.test(name!))?.[1] ?? name!;
      const key = `${label}: ${part}`;
      add(key, Number(stat!.split(" ")[0] ?? 0) / 1_000);
    }
    add(`${label}: children that ended`, endedChildrenUs(pid));
  }
  return times;
}

/** What a process inherits from those that it started and that are gone; PostgreSQL ends one with each connection. */
function endedChildrenUs(pid: number): number {
  // The name is in brackets and may hold spaces; user and system time of children are fields 16 and 17.
  const fields = read(`/proc/${pid}/stat`).split(") ").at(-1)!.split(" ");
  return (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) * US_PER_TICK;
}

/** A process and its children; PostgreSQL has one for each connection. */
export function familyOf(pid: number): number[] {
  const children = listed(`/proc/${pid}/task`).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number),
  );
  return [pid, ...children];
}

export function spentBetween(before: ProcessorTime, after: ProcessorTime): ProcessorTime {
  return new Map([...after].map(([part, us]) => [part, us - (before.get(part) ?? 0)]));
}

export function totalOf(times: ProcessorTime): number {
  return [...times.values()].reduce((sum, us) => sum + us, 0);
}

export function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) / KIB_PER_MIB;
}

function listed(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
