// What must be true of electors, watched from outside: the server tells who was granted what, the instances tell what
// their electors say, and all times here are true times of the simulated world.
//
// The first rule is the one that trust windows exist for: no gate lets through a check for an epoch after the server
// has granted a later one. It is waived for a hold that was taken away by force or by a restart, until the loss is
// known, and at most for one server timeout: after that no proof can be left. A server that is restored from an older state
// gives epochs again that it gave before: of those of before the same is true, and who knows of them leads in none below
// (instance-oracle.ts).

import type { Transition } from "../../core/trust/transitions.ts";
import type { NotLeaderReason } from "../../core/kit/errors.ts";
import { Instance, type InstanceRules } from "./instance-oracle.ts";
import type { Probe, ProbeCounts } from "./probes.ts";
import type { HoldEnd } from "./server.ts";

export class Oracle {
  readonly probes: ProbeCounts = {};
  grants = 0;
  writes = 0;
  checks = 0;
  readonly #nowMs: () => number;
  readonly #report: (node: string, error: Error) => void;
  readonly #rules: InstanceRules;
  readonly #takenAtMs = new Map<number, number>();
  readonly #askedEpochs = new Set<number>();
  #epoch = 0;
  #held = false;
  #acceptedEpoch = 0;
  /** Of all that was granted before the last restore, the highest. */
  #forgotten = { epoch: 0, atMs: -Infinity };

  constructor(nowMs: () => number, rules: InstanceRules, report: (node: string, error: Error) => void) {
    this.#nowMs = nowMs;
    this.#rules = rules;
    this.#report = report;
  }

  reached(probe: Probe): void {
    this.probes[probe] = (this.probes[probe] ?? 0) + 1;
  }

  fail(node: string, text: string): void {
    this.#report(node, new Error(text));
  }

  /** For one elector of one life of a node. */
  instance(node: string): Instance {
    return new Instance(node, this, this.#rules);
  }

  granted(epoch: number): void {
    if (this.#held) this.fail("server", `epoch ${epoch} was granted while epoch ${this.#epoch} is held`);
    if (epoch <= this.#epoch) this.fail("server", `epoch ${epoch} was granted after ${this.#epoch}`);
    this.#epoch = epoch;
    this.#held = true;
    this.grants++;
  }

  holdEnded(epoch: number, how: HoldEnd): void {
    this.#held = false;
    if (how === "timeout") this.reached("freed-by-the-server-timeout");
    if (how === "restarted") this.reached("server-restarted-while-held");
    if (how === "forced" || how === "restarted") this.#takenAtMs.set(epoch, this.#nowMs());
  }

  /** The server is as it was when this was its last epoch. */
  restored(epoch: number): void {
    this.#forgotten = { epoch: Math.max(this.#epoch, this.#forgotten.epoch), atMs: this.#nowMs() };
    this.#epoch = epoch;
    this.#acceptedEpoch = 0;
    this.reached("server-restored-from-an-older-state");
  }

  get wasRestored(): boolean {
    return this.#forgotten.epoch > 0;
  }

  resignAsked(): void {
    this.#askedEpochs.add(this.#epoch);
  }

  wasAsked(epoch: number): boolean {
    return this.#askedEpochs.has(epoch);
  }

  written(epoch: number, accepted: boolean): void {
    if (!accepted) return this.reached("stale-write-refused");
    this.writes++;
    if (epoch < this.#acceptedEpoch || epoch !== this.#epoch) {
      this.fail("server", `a write of epoch ${epoch} was accepted while epoch ${this.#epoch} is in force`);
    }
    this.#acceptedEpoch = epoch;
  }

  /** An instance's gate has let a check through at this moment. */
  gatePassed(node: string, epoch: number): void {
    this.checks++;
    if (epoch > this.#epoch && this.#wasGrantedBefore(epoch)) return this.reached("forced-out-and-still-acting");
    if (epoch > this.#epoch) return this.fail(node, `the gate is open for epoch ${epoch}, which was never granted`);
    if (epoch === this.#epoch) return;
    const takenAtMs = this.#takenAtMs.get(epoch);
    if (takenAtMs === undefined) {
      return this.fail(node, `the gate is open for epoch ${epoch}, and epoch ${this.#epoch} was granted before`);
    }
    this.reached("forced-out-and-still-acting");
    if (this.#nowMs() > takenAtMs + this.#rules.trustTrueMsMax) {
      this.fail(node, `the gate is open for epoch ${epoch} longer than trust lasts after it was taken away`);
    }
  }

  /** By what the server was before it was restored, so lately that somebody may still trust it. */
  #wasGrantedBefore(epoch: number): boolean {
    const { epoch: highest, atMs } = this.#forgotten;
    return epoch <= highest && this.#nowMs() <= atMs + this.#rules.trustTrueMsMax;
  }

  gateRefused(reason: NotLeaderReason): void {
    this.reached(`gate-refused-${reason}`);
  }

  ended(transition: Transition & { kind: "ended" }): void {
    switch (transition.reason) {
      case "resigned":
      case "expired":
      case "session-ended":
      case "lease-gone":
      case "unlocked":
        return this.reached(transition.reason);
      case "asked":
        return this.reached("asked-to-resign");
      case "superseded":
        return this.reached("superseded-by-the-fence");
      case "read-only":
        return;
    }
  }
}
