// A family of processes: everything that was started, directly or not, by a command that we started. A process group is not
// enough: `setsid`, a shell with job control and every daemon leave it. What they can't leave easily is their environment, so a
// command gets a random variable there, the cookie, and its family is:
//
//   those whose environment has the cookie  +  the named roots and groups
//   + children of any of these  +  members of the groups and sessions of any of these, until nobody is added
//
// Never: this process, its ancestors, its own group and session, the first process; and no group or session whose leader
// lives and is not of the family: that is somebody's shell. Out of reach: one that cleared its environment, left its session
// and lost its parents before anybody looked.
//
// Killing: the roots are stopped before anybody is looked for, and whoever is found is stopped too, until a look finds nobody
// new. Who is stopped starts nobody, so then all are known, and all are killed. A look takes some 33 µs of a core for each
// process of the machine, measured: 5 ms with 150, 15 ms with 450; a kill takes three looks at least.

import { setTimeout as sleep } from "node:timers/promises";
import { assert } from "../../core/kit/assert.ts";
import { signalGroup, signalProcess } from "./group.ts";
import { FAMILY_PATIENT_MS, FAMILY_QUICK_MS } from "./limits.ts";
import { type ProcessLine, processes, readProcess, variableOf } from "./table.ts";

export interface Cookie {
  readonly name: string;
  readonly value: string;
}

export interface Family {
  readonly cookie: Cookie;
  readonly roots: readonly number[];
  /** Numbers of groups, which are looked for as sessions too. */
  readonly groups: readonly number[];
  /** Who outlived an earlier kill: those whose parents we have killed ourselves are found by nothing else. */
  readonly left?: readonly ProcessLine[] | undefined;
}

export interface FamilyEnd {
  /** Who lives after all; 1 for some where there is no /proc, and where it can't be read. */
  readonly survivors: number;
  /** Of `process.hrtime`, when a look found nobody alive, or the last look ended. */
  readonly goneAtNs: bigint;
  /** Them, as far as they are known: for the next kill. */
  readonly left: readonly ProcessLine[];
  /** How many were found alive. */
  readonly killed: number;
}

/** In the environment of a keeper (keeper.ts). */
export const KEEPER = "TENURE_KEEPER";
const QUICK_LOOKS = 5;

/** Several at once are one: a look costs the same for all of them. Their cookies have one name. */
interface Wanted {
  readonly name: string;
  readonly values: ReadonlySet<string>;
  readonly roots: ReadonlySet<number>;
  readonly groups: ReadonlySet<number>;
  readonly left: readonly ProcessLine[];
}

/** Resolves when nobody of it lives, or after `withinMs`. */
export function killFamily({ withinMs, ...family }: Family & { readonly withinMs: number }): Promise<FamilyEnd> {
  return killFamilies([family], withinMs);
}

/** Who lives of it; undefined where there is no /proc, or it can't be read. */
export function familyMembers(family: Family): ProcessLine[] | undefined {
  return lookIfPossible(together([family]), new Map(), () => undefined) ?? undefined;
}

export async function killFamilies(families: readonly Family[], withinMs: number): Promise<FamilyEnd> {
  const untilMs = performance.now() + withinMs;
  const wanted = together(families);
  for (const pid of wanted.roots) signalProcess(pid, "SIGSTOP");
  const known = new Map(wanted.left.map((one) => [one.pid, one]));
  for (;;) {
    const found = lookIfPossible(wanted, known);
    if (found === undefined) return await killGroups(wanted, untilMs);
    if (found === null) {
      if (performance.now() > untilMs) return killBlindly(wanted);
      await sleep(FAMILY_PATIENT_MS);
      continue;
    }
    const added = found.filter((one) => known.get(one.pid)?.start !== one.start);
    // Who is not there any more is forgotten: the number may be another's soon.
    known.clear();
    for (const one of found) known.set(one.pid, one);
    for (const one of added) stop(one);
    if (added.length === 0 || performance.now() > untilMs) break;
  }
  const seen = new Set<string>();
  // By their numbers, right after a look has seen them: later a number may be another's.
  const kill = (): void => {
    for (const one of known.values()) {
      seen.add(`${one.pid} ${one.start}`);
      signalProcess(one.pid, "SIGKILL");
    }
  };
  kill();
  for (let looks = 0; ; looks++) {
    if (known.size > 0) await sleep(looks < QUICK_LOOKS ? FAMILY_QUICK_MS : FAMILY_PATIENT_MS);
    const living = lookIfPossible(wanted, known) ?? null;
    const goneAtNs = process.hrtime.bigint();
    const isLate = performance.now() > untilMs;
    if (living !== null) {
      if (living.length === 0 || isLate) return { survivors: living.length, left: living, goneAtNs, killed: seen.size };
      // Again at each look: whoever was missed is not missed twice.
      known.clear();
      for (const one of living) known.set(one.pid, one);
      kill();
    } else if (isLate) {
      return { survivors: Math.max(1, known.size), left: [...known.values()], goneAtNs, killed: seen.size };
    } else if (known.size === 0) await sleep(FAMILY_PATIENT_MS);
  }
}

function together(families: readonly Family[]): Wanted {
  const names = new Set(families.map(({ cookie }) => cookie.name));
  assert(names.size === 1, "families that are killed together have cookies of one name");
  return {
    name: families[0]!.cookie.name,
    values: new Set(families.map(({ cookie }) => cookie.value)),
    roots: new Set(families.flatMap(({ roots }) => roots)),
    groups: new Set(families.flatMap(({ groups }) => groups)),
    left: families.flatMap(({ left = [] }) => left),
  };
}

function stop({ pid }: ProcessLine): void {
  signalProcess(pid, "SIGSTOP");
}

/** Null: that can't be known now. Nobody may take it for "nobody". */
function lookIfPossible(
  wanted: Wanted,
  known: ReadonlyMap<number, ProcessLine>,
  found: (one: ProcessLine) => void = stop,
): ProcessLine[] | null | undefined {
  try {
    return look(wanted, known, found);
  } catch {
    return null;
  }
}

/** Who lives, with those `known` from an earlier look. `found` is told at once of each that is not: it may not live for long. */
function look(
  wanted: Wanted,
  known: ReadonlyMap<number, ProcessLine>,
  found: (one: ProcessLine) => void,
): ProcessLine[] | undefined {
  const strangers = ourselves(wanted.roots);
  const candidates: ProcessLine[] = [];
  const members = new Set<number>();
  const table = processes((one) => {
    if (!one.isAlive || one.isKernel || one.pid <= 1 || strangers.has(one.pid)) return;
    candidates.push(one);
    const isKnown = known.get(one.pid)?.start === one.start;
    const isNamed = wanted.roots.has(one.pid) || wanted.groups.has(one.group) || wanted.groups.has(one.session);
    if (!isKnown && !isNamed && !hasCookie(one.pid, wanted)) return;
    members.add(one.pid);
    if (!isKnown) found(one);
  });
  if (table === undefined) return undefined;
  const byPid = new Map(table.map((one) => [one.pid, one]));
  for (let size = -1; size !== members.size;) {
    size = members.size;
    addRelatives(candidates, byPid, members, wanted.roots);
  }
  return candidates.filter((one) => members.has(one.pid));
}

function hasCookie(pid: number, { name, values }: Wanted): boolean {
  const value = variableOf(pid, name);
  return value !== undefined && values.has(value);
}

function addRelatives(
  candidates: readonly ProcessLine[],
  byPid: ReadonlyMap<number, ProcessLine>,
  members: Set<number>,
  roots: ReadonlySet<number>,
): void {
  const own = byPid.get(process.pid);
  const groups = new Set<number>();
  const sessions = new Set<number>();
  const isOurs = (leader: number): boolean => members.has(leader) || byPid.get(leader)?.isAlive !== true;
  for (const pid of members) {
    const one = byPid.get(pid)!;
    if (one.group > 1 && one.group !== own?.group && isOurs(one.group)) groups.add(one.group);
    if (one.session > 1 && one.session !== own?.session && isOurs(one.session)) sessions.add(one.session);
  }
  for (const one of candidates) {
    const isRelated = members.has(one.parent) || groups.has(one.group) || sessions.has(one.session);
    if (isRelated && !members.has(one.pid) && !isKeeper(one, roots)) members.add(one.pid);
  }
}

/**
 * A keeper ends with its agent by itself, and must not be stopped by somebody who may be killed before it goes on. It is a child
 * of the agent, which is named as a root; a job, whatever it has in its environment, can't start one, and who poses as one in a job's
 * place has a group that the keeper kills.
 */
function isKeeper({ pid, parent, session }: ProcessLine, roots: ReadonlySet<number>): boolean {
  return roots.has(parent) && session === pid && variableOf(pid, KEEPER) !== undefined;
}

/** This process and its ancestors, without those that are named. */
function ourselves(named: ReadonlySet<number>): Set<number> {
  const line = new Set<number>();
  for (let pid = process.pid; pid > 0 && !line.has(pid); pid = readProcess(pid)?.parent ?? 0) line.add(pid);
  for (const pid of named) line.delete(pid);
  return line;
}

/** Nobody could look in time. What has a number dies all the same; that others live can't be ruled out. */
function killBlindly({ roots, groups, left }: Wanted): FamilyEnd {
  for (const pid of roots) signalProcess(pid, "SIGKILL");
  for (const group of groups) signalGroup(group, "SIGKILL");
  return { survivors: 1, left, goneAtNs: process.hrtime.bigint(), killed: roots.size + groups.size };
}

/** Where there is no table: what has a number. */
async function killGroups({ roots, groups }: Wanted, untilMs: number): Promise<FamilyEnd> {
  const killed = new Set<number>();
  for (;;) {
    const living = [
      ...[...roots].filter((pid) => signalProcess(pid, "SIGKILL")),
      ...[...groups].filter((group) => signalGroup(group, "SIGKILL")).map((group) => -group),
    ];
    for (const target of living) killed.add(target);
    const goneAtNs = process.hrtime.bigint();
    if (living.length === 0 || performance.now() > untilMs)
      return { survivors: living.length === 0 ? 0 : 1, left: [], goneAtNs, killed: killed.size };
    await sleep(FAMILY_PATIENT_MS);
  }
}
