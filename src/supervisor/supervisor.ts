// The supervisor of one node: carries out what core/supervise/node.ts decides, with real children and a real clock.

import { assertNever } from "../core/kit/assert.ts";
import { type NodeEffect, type NodeInput, type NodePlan, NodeSupervision, type Part } from "../core/supervise/node.ts";
import { sleep } from "../loops/time.ts";
import type { Child, Children } from "../ports/processes/children.ts";
import type { Clock, Timer } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { SURVIVORS_AGAIN_MS } from "./limits.ts";
import { type Cleared, readFromController } from "./messages.ts";

export interface SupervisorOptions {
  readonly plan: NodePlan;
  readonly children: Children;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of the clock that all processes of the machine share. */
  readonly nowNs: () => bigint;
}

export class Supervisor {
  /** The code with which the node ends. */
  readonly ended: Promise<number>;
  readonly #options: SupervisorOptions;
  readonly #node: NodeSupervision;
  readonly #end = Promise.withResolvers<number>();
  readonly #children: Partial<Record<Part, Child>> = {};
  /** When the last agent was seen to be gone; null: there was none. */
  #goneAtNs: bigint | null = null;
  #timer: Timer | null = null;
  #isOver = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#node = new NodeSupervision(options.plan);
    this.ended = this.#end.promise;
  }

  start(): void {
    this.#step({ kind: "start" });
  }

  /** In order; the second one does not wait. */
  stop(signal: "SIGTERM" | "SIGINT"): void {
    this.#step({ kind: "stop", signal });
  }

  /** Certificates are read again. */
  reload(): void {
    this.#children.controller?.signal("SIGHUP");
    this.#children.agent?.signal("SIGHUP");
  }

  #step(input: NodeInput): void {
    if (this.#isOver) return;
    const { clock } = this.#options;
    for (const effect of this.#node.step(clock.monotonicMs(), input)) this.#carryOut(effect);
    this.#timer?.cancel();
    if (this.#isOver) return;
    const nowMs = clock.monotonicMs();
    this.#timer = clock.setTimer(nowMs + Math.max(1, this.#node.untilMs(nowMs)), () => this.#step({ kind: "tick" }));
  }

  #carryOut(effect: NodeEffect): void {
    switch (effect.kind) {
      case "spawn":
        return this.#spawn(effect.part, effect.run);
      case "signal":
        return this.#children[effect.part]?.signal(effect.signal);
      case "end-agent":
        return void this.#endAgent(effect.run);
      case "cleared": {
        const goneAtNs = String(this.#goneAtNs ?? this.#options.nowNs());
        this.#children.controller?.send({ kind: "cleared", epoch: effect.epoch, goneAtNs } satisfies Cleared);
        return;
      }
      case "tell":
        return this.#tell(effect);
      case "end":
        this.#isOver = true;
        return this.#end.resolve(effect.code);
      default:
        assertNever(effect, "Supervisor");
    }
  }

  #tell({ level, event, text }: NodeEffect & { kind: "tell" }): void {
    this.#options.logger[level]({ event, at_ns: String(this.#options.nowNs()) }, text);
  }

  #spawn(part: Part, run: number): void {
    const { children, logger } = this.#options;
    const child = children.start(part, {
      told: (message) => this.#told(part, run, message),
      exited: (how) => this.#step({ kind: "exited", part, run, how }),
    });
    this.#children[part] = child;
    const stamp = { pid: child.pid, at_ns: String(child.startedAtNs) };
    logger.info({ event: `${part}-started`, ...stamp }, `the ${part} runs as process ${child.pid ?? "?"}`);
  }

  #told(part: Part, run: number, message: unknown): void {
    const told = readFromController(message);
    if (told === null) return;
    // An agent is up when it says its first word.
    if (part === "agent") return this.#step({ kind: "up", part, run });
    if (told.kind === "alive" || told.kind === "up") return this.#step({ kind: told.kind, part, run });
    this.#step({ ...told, run });
  }

  async #endAgent(run: number): Promise<void> {
    const { clock, logger, children } = this.#options;
    const fromMs = clock.monotonicMs();
    const { survivors, goneAtNs } = await children.endAgents();
    if (survivors === 0) {
      this.#goneAtNs = goneAtNs;
      const fields = { event: "agent-gone", at_ns: String(goneAtNs), ms: Math.round(clock.monotonicMs() - fromMs) };
      logger.info(fields, "the agent and its jobs are gone");
    }
    // Nobody is quicker for being asked all the time.
    if (survivors > 0) await sleep(clock, SURVIVORS_AGAIN_MS);
    this.#step({ kind: "agent-gone", run, survivors });
  }
}
