// What goes wrong in a run of electors: faults of the kernel, drawn with times that matter to a trust window, and faults of
// this room. Every fault ends by itself, so that any part of a plan is a plan.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { apply, type Fault, weighted } from "../kernel/index.ts";
import { type Knobs, RATE_MAX, RATE_MIN } from "./knobs.ts";
import { SERVER, type Stage } from "./stage.ts";

const HOUR_MS = 3_600_000;
/** Who leads at the moment that the fault comes. */
const LEADER = "leader";

type Shape =
  | { kind: "sleep"; node: string; forMs: number }
  /** A wall clock that jumps ahead and is set right again. */
  | { kind: "wall-blip"; node: string; forMs: number }
  | { kind: "server-restart"; forMs: number }
  | { kind: "server-pause"; forMs: number }
  /** It comes back as it was so many grants ago: restored from a backup. */
  | { kind: "server-restore"; grants: number; forMs: number }
  | { kind: "ask-resign" }
  /** `told`: the session is terminated; otherwise only its hold is gone. */
  | { kind: "force"; told: boolean }
  /** A proof that is old when it arrives: the leader stops with a beat under way, goes on, and is cut off at once. */
  | { kind: "stale-proof"; pauseMs: number; forMs: number }
  /** A grant that is old when it arrives: who is next stops as soon as it has asked, goes on, and is cut off at once. */
  | { kind: "stale-grant"; pauseMs: number; forMs: number }
  /** Cut off with a beat under way, when the wall clock jumps ahead: no timer says so. */
  | { kind: "blind-beat"; forMs: number }
  /** The same, and the wall clock is set right again while trust would still last. */
  | { kind: "blind-blip"; forMs: number }
  /** The wall clock is set back, and the leader is cut off. */
  | { kind: "set-back"; forMs: number }
  /** Asked to resign, with the answer under way, and forced out: the answer must not end the next term. */
  | { kind: "ask-and-force"; latencyMs: number };

type OwnFault = Shape extends infer S ? (S extends Shape ? Readonly<S> & { readonly atMs: number } : never) : never;
export type ElectorFault = Fault | OwnFault;

const WEIGHTS = {
  pause: 3,
  crash: 2,
  cut: 2,
  "cut-one-way": 2,
  flap: 1,
  lossy: 1,
  duplicating: 1,
  "slow-link": 1,
  "clock-rate": 1,
  "wall-jump": 2,
  "wall-blip": 1,
  sleep: 2,
  "server-restart": 1,
  "server-pause": 1,
  "server-restore": 1,
  "ask-resign": 1,
  force: 1,
  "stale-proof": 2,
  "ask-and-force": 1,
  "stale-grant": 1,
  "blind-beat": 1,
  "blind-blip": 1,
  "set-back": 1,
} as const;
export type Kind = keyof typeof WEIGHTS;
const KINDS = weighted<Kind>(WEIGHTS);
/** Longer than an elector takes to look at its wall clock. */
const BLIP_HEARTBEATS = 1.5;
/** Of what a run is aimed at. */
const AIMED_FAULTS = 4;

export function drawPlan(random: Random, names: readonly string[], knobs: Knobs): ElectorFault[] {
  const faults = Array.from({ length: knobs.faults }, (_, at) => draw(random.fork(`fault/${at}`), KINDS, names, knobs));
  for (let at = 0; knobs.aims.length > 0 && at < AIMED_FAULTS; at++) {
    faults.push(draw(random.fork(`aimed/${at}`), knobs.aims, names, knobs));
  }
  // One that certainly has an effect (trap 33).
  const stream = random.fork("certain");
  faults.push({ atMs: Math.floor(knobs.faultsUntilMs * 0.5), kind: "pause", node: stream.pick(names), forMs: 50 });
  return faults.sort((a, b) => a.atMs - b.atMs);
}

function draw(random: Random, kinds: readonly Kind[], names: readonly string[], knobs: Knobs): ElectorFault {
  const { serverTimeoutMs } = knobs.timing;
  const kind = random.pick(kinds);
  const atMs = Math.floor(random.between(500, knobs.faultsUntilMs));
  const node = random.chance(0.7) ? LEADER : random.pick(names);
  // Around the whole window: what is over before trust ends, between trust and the timeout, and long after both.
  const forMs = Math.floor(serverTimeoutMs * random.pick([0.3, 0.7, 0.9, 1.05, 1.3, 2]) * random.between(0.9, 1.1));
  const cutMs = 2 * serverTimeoutMs;
  switch (kind) {
    case "pause":
      return { atMs, kind, node, forMs };
    case "crash":
      return { atMs, kind, node, restartAfterMs: forMs, silent: random.chance(0.4) };
    case "cut":
      return { atMs, kind, a: node, b: SERVER, forMs };
    case "cut-one-way": {
      const [from, to] = random.chance(0.5) ? [node, SERVER] : [SERVER, node];
      return { atMs, kind, from, to, forMs };
    }
    case "flap":
      return { atMs, kind, a: node, b: SERVER, periodMs: Math.ceil(forMs / (2 + random.below(8))), forMs };
    case "lossy":
    case "duplicating":
      return { atMs, kind, rate: random.between(0.05, 0.6), forMs };
    case "slow-link": {
      const latencyMinMs = serverTimeoutMs * random.between(0.02, 0.4);
      return {
        atMs,
        kind,
        a: node,
        b: SERVER,
        latencyMinMs,
        latencyTailMs: latencyMinMs * random.between(0, 1),
        forMs,
      };
    }
    case "clock-rate":
      return { atMs, kind, node: random.chance(0.3) ? SERVER : node, rate: random.between(RATE_MIN, RATE_MAX), forMs };
    case "wall-jump":
      return { atMs, kind, node, byMs: random.chance(0.5) || knobs.sleepy ? HOUR_MS : -HOUR_MS };
    case "wall-blip":
      if (knobs.sleepy) return { atMs, kind: "pause", node, forMs };
      return { atMs, kind, node, forMs: Math.floor(knobs.timing.heartbeatMs * random.between(0.5, 3)) };
    case "sleep":
      return knobs.sleepy ? { atMs, kind, node, forMs } : { atMs, kind: "pause", node, forMs };
    case "server-restart":
    case "server-pause":
      return { atMs, kind, forMs: Math.floor(forMs / 2) };
    case "server-restore":
      return { atMs, kind, grants: 1 + random.below(3), forMs: Math.floor(forMs / 2) };
    case "ask-resign":
      return { atMs, kind };
    case "force":
      return { atMs, kind, told: random.chance(0.5) };
    case "stale-proof":
      return { atMs, kind, pauseMs: Math.floor(serverTimeoutMs * random.between(0.3, 0.7)), forMs: cutMs };
    case "stale-grant":
      return { atMs, kind, pauseMs: Math.floor(serverTimeoutMs * random.between(0.3, 0.95)), forMs: cutMs };
    case "blind-beat":
      return { atMs, kind, forMs: cutMs };
    case "blind-blip":
    case "set-back":
      // Where machines sleep, no wall clock is set back.
      return { atMs, kind: knobs.sleepy ? "blind-beat" : kind, forMs: cutMs };
    case "ask-and-force":
      return { atMs, kind, latencyMs: serverTimeoutMs * random.between(0.1, 0.45) };
    default:
      return assertNever(kind, "kind of fault");
  }
}

export function applyElectorFault(stage: Stage, fault: ElectorFault, hit: () => void): void {
  const { world } = stage;
  const { heartbeatMs } = stage.knobs.timing;
  const { atMs } = fault;
  switch (fault.kind) {
    case "sleep": {
      const node = resolve(stage, fault.node);
      if (node === undefined || !world.node(node).process.sleep()) return;
      hit();
      stage.disturb(node, "sleep");
      return after(stage, fault.forMs, () => world.resume(node));
    }
    case "wall-blip": {
      const node = resolve(stage, fault.node);
      if (node === undefined) return;
      hit();
      for (const [afterMs, byMs] of [
        [0, HOUR_MS],
        [fault.forMs, -HOUR_MS],
      ] as const) {
        after(stage, afterMs, () => applyKernelFault(stage, { atMs, kind: "wall-jump", node, byMs }, () => {}));
      }
      return;
    }
    case "server-restart":
    case "server-pause":
    case "server-restore":
      return disturbServer(stage, fault, hit);
    case "ask-resign":
      return ask(stage, hit);
    case "force":
      world.call(SERVER, () => stage.server?.force(fault.told) === true && hit());
      return;
    case "stale-proof":
      return whenHolderSends(stage, "beat", (node) => stopAndCut(stage, node, fault, hit));
    case "stale-grant":
      world.call(SERVER, () => stage.server?.force(true));
      return whenHolderSends(stage, "ask", (node) => stopAndCut(stage, node, fault, hit));
    case "blind-beat":
    case "blind-blip":
    case "set-back": {
      const byMs = fault.kind === "set-back" ? -HOUR_MS : HOUR_MS;
      return whenHolderSends(stage, "beat", (node) => {
        hit();
        apply(world, { atMs, kind: "cut", a: node, b: SERVER, forMs: fault.forMs }, { hit: () => {} });
        const jump = (ms: number) => applyKernelFault(stage, { atMs, kind: "wall-jump", node, byMs: ms }, () => {});
        jump(byMs);
        if (fault.kind === "blind-blip") after(stage, heartbeatMs * BLIP_HEARTBEATS, () => jump(-byMs));
      });
    }
    case "ask-and-force":
      if (stage.holder !== undefined) ask(stage, hit);
      return whenHolderSends(stage, "beat", (node) => delayAndForce(stage, node, fault));
    default:
      return applyKernelFault(stage, fault, hit);
  }
}

function disturbServer(
  stage: Stage,
  fault: OwnFault & { kind: "server-restart" | "server-pause" | "server-restore" },
  hit: () => void,
): void {
  const { atMs, forMs } = fault;
  if (fault.kind === "server-pause") {
    return apply(stage.world, { atMs, kind: "pause", node: SERVER, forMs }, { hit });
  }
  const crashed = (): void => {
    if (fault.kind === "server-restart" || stage.restoreServer(fault.grants)) hit();
  };
  apply(stage.world, { atMs, kind: "crash", node: SERVER, restartAfterMs: forMs }, { hit: crashed });
}

function applyKernelFault(stage: Stage, fault: Fault, hit: () => void): void {
  const { world } = stage;
  const text = JSON.stringify(fault);
  const node = text.includes(`"${LEADER}"`) ? stage.holder : undefined;
  if (text.includes(`"${LEADER}"`) && node === undefined) return;
  const resolved = JSON.parse(text.replaceAll(`"${LEADER}"`, `"${node}"`)) as Fault;
  if (resolved.kind === "wall-jump" || resolved.kind === "pause") stage.disturb(resolved.node, resolved.kind);
  apply(world, resolved, { hit });
}

/** What was answered meanwhile is heard when it goes on, and nothing after that. */
function stopAndCut(
  stage: Stage,
  node: string,
  { atMs, pauseMs, forMs }: OwnFault & { kind: "stale-proof" | "stale-grant" },
  hit: () => void,
): void {
  hit();
  apply(stage.world, { atMs, kind: "pause", node, forMs: pauseMs }, { hit: () => {} });
  // Long enough to hear what waited, and too short for the next beat to be answered.
  after(stage, pauseMs + 1e-3, () => {
    apply(stage.world, { atMs, kind: "cut", a: node, b: SERVER, forMs }, { hit: () => {} });
  });
}

/** Only what the server answers in the next moment is slow. */
function delayAndForce(stage: Stage, node: string, { latencyMs, atMs }: OwnFault & { kind: "ask-and-force" }): void {
  const { latencyMinMs, latencyTailMs } = stage.knobs.link;
  const momentMs = 3 * (latencyMinMs + latencyTailMs);
  const slow = { latencyMinMs: latencyMs, latencyTailMs: 0, forMs: momentMs };
  apply(stage.world, { atMs, kind: "slow-link", a: node, b: SERVER, ...slow }, { hit: () => {} });
  after(stage, momentMs + 1, () => stage.world.call(SERVER, () => stage.server?.force(true)));
}

function ask(stage: Stage, hit: () => void): void {
  stage.world.call(SERVER, () => {
    if (stage.server?.requestResign() !== true) return;
    stage.oracle.resignAsked();
    hit();
  });
}

/** As soon as whoever holds the scope now sends such a request, if that is soon. */
function whenHolderSends(stage: Stage, what: "beat" | "ask", fire: (node: string) => void): void {
  const node = stage.holder;
  if (node === undefined) return;
  const untilMs = stage.world.nowMs + stage.knobs.timing.heartbeatMs * 2;
  stage.onSending(node, what, () => {
    if (stage.world.nowMs <= untilMs) after(stage, 0, () => fire(node));
  });
}

function resolve(stage: Stage, node: string): string | undefined {
  return node === LEADER ? stage.holder : node;
}

/** Not once the faults are over: then everything is as it should be already. */
function after(stage: Stage, forMs: number, fire: () => void): void {
  const { scheduler } = stage.world;
  scheduler.schedule(scheduler.nowMs + forMs, scheduler.owner("faults"), () => {
    if (!stage.calm) fire();
  });
}
