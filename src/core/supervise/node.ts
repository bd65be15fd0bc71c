// What the supervisor of one node does, and when: the decisions, without processes and clocks. It has two children, the
// controller (API and scheduler) and, where moonlighting is on, an agent (worker).
//
//   controller   off ──start──▶ running ──exited──▶ waiting (backoff) ──▶ running …      final code, crash loop ──▶ the end
//   agent        off ──released──▶ running ──clear, stop, exited, hung──▶ ending (it and its jobs are killed) ──gone──▶ off or waiting
//                unknown, until the controller is up ──▶ ending: a supervisor that was killed may have left somebody behind
//
// A controller that was elected asks for the node to be cleared, and opens its gate only when it was told so (specification
// §2.3: leader and worker are never at once on a node). When it does not lead any more it releases the node.
//
// Invariants:
// - `cleared` is said only while no agent runs, and none is spawned from there until the node is released.
// - Of each child at most one runs; an agent is spawned only when nobody of the one before, nor of its jobs, lives.
// - While the node stops, nothing is spawned (trap 48).
// - A child is only called hung for time in which we ourselves were running (trap 49): a machine that slept hangs nobody.

import { assert, assertNever } from "../kit/assert.ts";
import { AGENT_KEY_RETRY_MS, CRASHES_MAX, SHORT_RUN_MS, SUPERVISION_TICK_MS } from "./limits.ts";
import { Restarts } from "./restarts.ts";

export type Part = "controller" | "agent";

export interface NodePlan {
  readonly moonlights: boolean;
  /** A child that is up and says nothing for so long is replaced; before it is up, it has longer. */
  readonly hangMs: number;
  readonly startMs: number;
  /** For both to end in order. */
  readonly stopMs: number;
}

export interface Exit {
  /** One of the two is null. */
  readonly code: number | null;
  readonly signal: string | null;
}

/** `run` counts the processes of a part: what is said of an earlier one changes nothing. */
export type NodeInput =
  | { readonly kind: "start" }
  | { readonly kind: "tick" }
  | { readonly kind: "alive"; readonly part: Part; readonly run: number }
  /** The child does its work. */
  | { readonly kind: "up"; readonly part: Part; readonly run: number }
  | { readonly kind: "exited"; readonly part: Part; readonly run: number; readonly how: Exit }
  /** The controller was elected. */
  | { readonly kind: "clear"; readonly run: number; readonly epoch: number }
  /** The controller may be handed leadership soon: as `clear`, but by itself it lasts only so long. */
  | { readonly kind: "empty"; readonly run: number; readonly forMs: number }
  /** The controller does not lead. */
  | { readonly kind: "released"; readonly run: number; readonly holdMs?: number | undefined }
  /** An operator has taken the node out, or in again: meanwhile no agent is started. One that runs works on. */
  | { readonly kind: "drained"; readonly run: number; readonly isDrained: boolean }
  /** Of the agent and its jobs. */
  | { readonly kind: "agent-gone"; readonly run: number; readonly survivors: number }
  | { readonly kind: "stop"; readonly signal: "SIGTERM" | "SIGINT" };

export type NodeEffect =
  | { readonly kind: "spawn"; readonly part: Part; readonly run: number }
  | { readonly kind: "signal"; readonly part: Part; readonly signal: "SIGTERM" | "SIGKILL" }
  /** SIGKILL to this node's agents and to everybody that came of them; the answer is `agent-gone`. */
  | { readonly kind: "end-agent"; readonly run: number }
  /** To the controller. */
  | { readonly kind: "cleared"; readonly epoch: number }
  | { readonly kind: "tell"; readonly level: "info" | "warn" | "error"; readonly event: string; readonly text: string }
  | { readonly kind: "end"; readonly code: number };

type Controller =
  | { readonly phase: "off" }
  | { readonly phase: "running"; readonly run: number; readonly sinceMs: number; isUp: boolean; silentMs: number }
  | { readonly phase: "waiting"; readonly atMs: number };

interface Failure {
  readonly afterMs: number;
  /** It did its work before: how long it ran says nothing where it never did. */
  readonly wasUp: boolean;
  readonly code: number | null;
}

type Agent =
  /** Of a supervisor before us. The controller, when it is up, has the data directory to itself: then nobody else may live. */
  | { readonly phase: "unknown" }
  | { readonly phase: "off" }
  | { readonly phase: "running"; readonly run: number; readonly sinceMs: number; isUp: boolean; silentMs: number }
  /** `failed`: it ended by itself, or hung; null: we have ended it. */
  | { readonly phase: "ending"; readonly run: number; readonly failed: Failure | null }
  | { readonly phase: "waiting"; readonly atMs: number }
  /** It fails again and again: tried once more when the node is released again. */
  | { readonly phase: "given-up" };

/** What a restart does not repair: wrong use, unusable data, missing permission, configuration (sysexits). */
const FINAL_CODES: ReadonlySet<number> = new Set([64, 65, 77, 78]);
/** Of an agent: wrong use, another has its name (which would be taken back, and its jobs, for ever), configuration. */
const AGENT_FINAL_CODES: ReadonlySet<number> = new Set([64, 76, 78]);
/** Its key is not known, or may not do this: a key can be made when the cluster stands, and then nobody has to come by. */
const AGENT_KEY_CODE = 77;
/** No epoch: the answer to `empty`. */
export const EMPTIED = 0;
const EXIT_SOFTWARE = 70;
const EXIT_OF = { SIGTERM: 143, SIGINT: 130 } as const;

export class NodeSupervision {
  readonly #plan: NodePlan;
  readonly #restarts: Record<Part, Restarts> = { controller: new Restarts(), agent: new Restarts() };
  readonly #crashes: Record<Part, number> = { controller: 0, agent: 0 };
  #controller: Controller = { phase: "off" };
  #agent: Agent = { phase: "unknown" };
  #runs = 0;
  /** The controller has asked for the node, or may: until it releases it no agent runs. */
  #isHeld = true;
  #clearing: number | null = null;
  /** It was asked for in case that leadership is handed over: the node is released by itself. */
  #emptyUntilMs: number | null = null;
  #stopping: { readonly untilMs: number; readonly code: number } | null = null;
  #isDrained = false;
  #isOver = false;
  #lastMs: number | null = null;

  constructor(plan: NodePlan) {
    this.#plan = plan;
  }

  /** For whoever shows it. */
  get phases(): { readonly controller: Controller["phase"]; readonly agent: Agent["phase"] } {
    return { controller: this.#controller.phase, agent: this.#agent.phase };
  }

  /** After so long a tick is due, at the latest. */
  untilMs(nowMs: number): number {
    const due = [this.#controller, this.#agent].flatMap((one) => (one.phase === "waiting" ? [one.atMs - nowMs] : []));
    return Math.max(0, Math.min(SUPERVISION_TICK_MS, ...due, (this.#stopping?.untilMs ?? Infinity) - nowMs));
  }

  step(nowMs: number, input: NodeInput): NodeEffect[] {
    if (this.#isOver) return [];
    const effects: NodeEffect[] = [];
    this.#take(nowMs, input, effects);
    this.#listen(nowMs, effects);
    this.#look(nowMs, effects);
    return effects;
  }

  #take(nowMs: number, input: NodeInput, effects: NodeEffect[]): void {
    switch (input.kind) {
      case "start":
        assert(this.#controller.phase === "off", "a node is started once");
        return this.#spawnController(nowMs, effects);
      case "tick":
        return;
      case "alive":
      case "up": {
        const child = this.#running(input.part, input.run);
        if (child === null) return;
        child.silentMs = 0;
        if (input.kind === "alive") return;
        child.isUp = true;
        if (input.part === "controller" && this.#agent.phase === "unknown") this.#endUnknown(effects);
        return;
      }
      case "exited":
        return input.part === "controller"
          ? this.#controllerExited(nowMs, input.run, input.how, effects)
          : this.#agentExited(nowMs, input.run, input.how, effects);
      case "clear":
        if (this.#running("controller", input.run) === null) return;
        this.#isHeld = true;
        this.#emptyUntilMs = null;
        this.#clearing = input.epoch;
        // Who leads has the data directory to itself, whether or not it has said that it is up.
        if (this.#agent.phase === "unknown") this.#endUnknown(effects);
        return this.#endAgent(effects);
      case "empty":
        // Whoever leads, or is about to, has asked for more.
        if (this.#running("controller", input.run) === null || (this.#isHeld && this.#emptyUntilMs === null)) return;
        this.#isHeld = true;
        this.#emptyUntilMs = Math.max(this.#emptyUntilMs ?? 0, nowMs + input.forMs);
        this.#clearing = EMPTIED;
        return this.#endAgent(effects);
      case "released":
        return this.#released(nowMs, input.run, input.holdMs ?? 0);
      case "drained":
        if (this.#running("controller", input.run) !== null) this.#isDrained = input.isDrained;
        return;
      case "agent-gone":
        return this.#agentGone(nowMs, input.run, input.survivors, effects);
      case "stop":
        return this.#stop(nowMs, input.signal, effects);
      default:
        assertNever(input, "NodeSupervision");
    }
  }

  /** What follows from the state alone. */
  #look(nowMs: number, effects: NodeEffect[]): void {
    if (this.#clearing !== null && isGone(this.#agent)) {
      effects.push({ kind: "cleared", epoch: this.#clearing });
      this.#clearing = null;
    }
    if (this.#emptyUntilMs !== null && nowMs >= this.#emptyUntilMs) {
      this.#emptyUntilMs = null;
      this.#isHeld = false;
    }
    if (this.#stopping !== null) return this.#lookForTheEnd(nowMs, this.#stopping, effects);
    if (this.#controller.phase === "waiting" && nowMs >= this.#controller.atMs) this.#spawnController(nowMs, effects);
    const agent = this.#agent;
    const isDue = agent.phase === "off" || (agent.phase === "waiting" && nowMs >= agent.atMs);
    if (this.#plan.moonlights && !this.#isHeld && !this.#isDrained && isDue) {
      const run = ++this.#runs;
      this.#agent = { phase: "running", run, sinceMs: nowMs, isUp: false, silentMs: 0 };
      effects.push({ kind: "spawn", part: "agent", run });
    }
  }

  #lookForTheEnd(nowMs: number, stopping: { untilMs: number; code: number }, effects: NodeEffect[]): void {
    if (nowMs >= stopping.untilMs) {
      if (this.#controller.phase === "running") {
        effects.push({ kind: "signal", part: "controller", signal: "SIGKILL" });
        this.#controller = { phase: "off" };
      }
      this.#endAgent(effects);
    }
    if (this.#controller.phase === "running") return;
    // Of a supervisor before us, and nobody has looked yet.
    if (this.#agent.phase === "unknown") this.#endUnknown(effects);
    if (!isGone(this.#agent)) return;
    this.#isOver = true;
    effects.push({ kind: "end", code: stopping.code });
  }

  // ---- the controller ------------------------------------------------------------------------------

  #spawnController(nowMs: number, effects: NodeEffect[]): void {
    const run = ++this.#runs;
    this.#controller = { phase: "running", run, sinceMs: nowMs, isUp: false, silentMs: 0 };
    effects.push({ kind: "spawn", part: "controller", run });
  }

  #controllerExited(nowMs: number, run: number, how: Exit, effects: NodeEffect[]): void {
    const child = this.#running("controller", run);
    if (child === null) return;
    const text = `the controller has ended (${shown(how)})`;
    this.#controller = { phase: "off" };
    // Whoever asked is gone. The agent runs on if it ran: what was elected here is not any more.
    this.#clearing = null;
    if (this.#stopping !== null) return;
    const isFinal = how.code !== null && FINAL_CODES.has(how.code);
    const failure = failureOf(child, nowMs, how.code);
    const isLoop = this.#crashed("controller", failure) >= CRASHES_MAX;
    if (isFinal || isLoop) {
      const why = isFinal
        ? "a restart would not repair that"
        : `${CRASHES_MAX} times in a row, each soon after its start`;
      effects.push({ kind: "tell", level: "error", event: "given-up", text: `${text}: ${why}. The node ends.` });
      this.#stopping = { untilMs: nowMs, code: how.code === null || how.code === 0 ? EXIT_SOFTWARE : how.code };
      return;
    }
    const delayMs = this.#delayMs("controller", failure);
    // It forgets that with its end: who is started anew is willing.
    this.#isDrained = false;
    this.#controller = { phase: "waiting", atMs: nowMs + delayMs };
    const next = `${text}; it is started again in ${delayMs} ms`;
    effects.push({ kind: "tell", level: "error", event: "controller-ended", text: next });
  }

  #released(nowMs: number, run: number, holdMs: number): void {
    if (this.#running("controller", run) === null) return;
    if (this.#agent.phase === "given-up" && this.#isHeld) {
      this.#agent = { phase: "off" };
      this.#crashes.agent = 0;
    }
    this.#isHeld = holdMs > 0;
    this.#emptyUntilMs = holdMs > 0 ? nowMs + holdMs : null;
    this.#clearing = null;
  }

  // ---- the agent -----------------------------------------------------------------------------------

  #endUnknown(effects: NodeEffect[]): void {
    const run = ++this.#runs;
    this.#agent = { phase: "ending", run, failed: null };
    effects.push({ kind: "end-agent", run });
  }

  #endAgent(effects: NodeEffect[]): void {
    const agent = this.#agent;
    if (agent.phase === "waiting") this.#agent = { phase: "off" };
    if (agent.phase !== "running") return;
    this.#agent = { phase: "ending", run: agent.run, failed: null };
    effects.push({ kind: "end-agent", run: agent.run });
  }

  /** Its jobs may live on: they are its, and end with it. */
  #agentExited(nowMs: number, run: number, how: Exit, effects: NodeEffect[]): void {
    const child = this.#running("agent", run);
    if (child === null) return;
    this.#agent = { phase: "ending", run, failed: failureOf(child, nowMs, how.code) };
    if (this.#stopping === null) {
      const text = `the agent has ended (${shown(how)})`;
      effects.push({ kind: "tell", level: "error", event: "agent-ended", text });
    }
    effects.push({ kind: "end-agent", run });
  }

  #agentGone(nowMs: number, run: number, survivors: number, effects: NodeEffect[]): void {
    const agent = this.#agent;
    if (agent.phase !== "ending" || agent.run !== run) return;
    const isTimeUp = this.#stopping !== null && nowMs >= this.#stopping.untilMs;
    if (survivors > 0 && !isTimeUp) {
      const text = `${survivors} processes of the agent's outlive SIGKILL: no other agent is started, and this node can't lead`;
      effects.push({ kind: "tell", level: "error", event: "agent-survives", text }, { kind: "end-agent", run });
      return;
    }
    const { failed } = agent;
    this.#agent = { phase: "off" };
    if (survivors > 0) this.#clearing = null;
    if (failed === null || this.#stopping !== null) return;
    this.#agent = this.#agentAfter(nowMs, failed, effects);
  }

  #agentAfter(nowMs: number, failed: Failure, effects: NodeEffect[]): Agent {
    if (failed.code === AGENT_KEY_CODE) return { phase: "waiting", atMs: nowMs + AGENT_KEY_RETRY_MS };
    const isFinal = failed.code !== null && AGENT_FINAL_CODES.has(failed.code);
    if (this.#crashed("agent", failed) < CRASHES_MAX && !isFinal)
      return { phase: "waiting", atMs: nowMs + this.#delayMs("agent", failed) };
    const why = isFinal
      ? `the agent has ended with exit code ${failed.code}, which a restart does not mend`
      : `the agent has ended ${CRASHES_MAX} times in a row, each soon after its start`;
    const text = `${why}: this node works no more until its role changes or it is restarted`;
    effects.push({ kind: "tell", level: "error", event: "agent-given-up", text });
    return { phase: "given-up" };
  }

  // ---- both ----------------------------------------------------------------------------------------

  #running(part: Part, run: number): (Controller & { phase: "running" }) | null {
    const child = part === "controller" ? this.#controller : this.#agent;
    return child.phase === "running" && child.run === run ? child : null;
  }

  /** How often in a row. */
  #crashed(part: Part, { afterMs, wasUp }: Failure): number {
    this.#crashes[part] = !wasUp || afterMs < SHORT_RUN_MS ? this.#crashes[part] + 1 : 0;
    return this.#crashes[part];
  }

  #delayMs(part: Part, { afterMs, wasUp }: Failure): number {
    return this.#restarts[part].delayMs(wasUp ? afterMs : 0);
  }

  #listen(nowMs: number, effects: NodeEffect[]): void {
    // Our own pauses are not theirs.
    const passedMs = Math.min(nowMs - (this.#lastMs ?? nowMs), 2 * SUPERVISION_TICK_MS);
    this.#lastMs = nowMs;
    for (const part of ["controller", "agent"] as const) {
      const child = part === "controller" ? this.#controller : this.#agent;
      if (child.phase !== "running") continue;
      child.silentMs += passedMs;
      const limitMs = child.isUp ? this.#plan.hangMs : this.#plan.startMs;
      if (child.silentMs <= limitMs) continue;
      const text = `the ${part} has said nothing for ${limitMs} ms: it hangs, and is replaced`;
      effects.push({ kind: "tell", level: "error", event: "hung", text });
      child.silentMs = 0;
      if (part === "controller") effects.push({ kind: "signal", part, signal: "SIGKILL" });
      else {
        this.#agent = { phase: "ending", run: child.run, failed: failureOf(child, nowMs, null) };
        effects.push({ kind: "end-agent", run: child.run });
      }
    }
  }

  #stop(nowMs: number, signal: "SIGTERM" | "SIGINT", effects: NodeEffect[]): void {
    if (this.#stopping !== null) {
      this.#stopping = { untilMs: nowMs, code: EXIT_OF[signal] };
      return;
    }
    this.#stopping = { untilMs: nowMs + this.#plan.stopMs, code: 0 };
    if (this.#controller.phase === "waiting") this.#controller = { phase: "off" };
    if (this.#agent.phase === "waiting") this.#agent = { phase: "off" };
    for (const part of ["agent", "controller"] as const) {
      const child = part === "controller" ? this.#controller : this.#agent;
      if (child.phase === "running") effects.push({ kind: "signal", part, signal: "SIGTERM" });
    }
  }
}

function failureOf(child: { sinceMs: number; isUp: boolean }, nowMs: number, code: number | null): Failure {
  return { afterMs: nowMs - child.sinceMs, wasUp: child.isUp, code };
}

function isGone({ phase }: Agent): boolean {
  return phase === "off" || phase === "waiting" || phase === "given-up";
}

function shown({ code, signal }: Exit): string {
  return signal ?? `exit code ${code}`;
}
