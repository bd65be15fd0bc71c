// The planted mistakes of electors: what is known to go wrong between "I hold the lock" and "I may act". Each must be
// found by the simulation of electors (sim/elector). (What only a seat that breaks its own contract can turn into harm,
// such as a grant after it was abandoned, is caught by the unit tests of the machine.)

import type { ElectorLimits } from "../elector/index.ts";
import { type Mutant, planting } from "./patch.ts";

const MACHINE = "core/trust/machine.ts";
const WINDOW = "core/trust/window.ts";
const GATE = "electors/gate.ts";
const LEAD = "electors/lead.ts";
const LOOP = "electors/seat-loop.ts";

const mutant = planting(undefined, "elector");

/** Chance leads there too seldom: the runs are of this kind, and have more of these faults. */
function inRunsOf({ pins, ...kind }: ElectorLimits) {
  return planting({ ...kind, pins: { restlessness: 0.2, ...pins } }, "elector");
}

/** Answers of an earlier term come where requests stand for themselves; who is alone leads again before that. */
const ALONE: ElectorLimits = { flavour: "lease", instances: 1, pins: { aims: ["ask-and-force"] } };

export const ELECTOR_MUTANTS: readonly Mutant[] = [
  mutant("asked-lets-go-at-once", "trap 48", {
    file: LEAD,
    find: `    case "asked": {
      const late = await drained(on, term, outcome, drainMs);`,
    replace: `    case "asked": {
      const late = undefined;`,
  }),
  mutant("retry-in-the-same-epoch", "decision 40", {
    file: LEAD,
    find: 'if (fate === "open" && isSuspended)',
    replace: 'if (fate === "open" && (onError === "retry" || isSuspended))',
  }),
  mutant("window-from-the-answer", "trap 44", {
    file: LOOP,
    find: 'this.submit({ kind: "beaten", epoch, sentAt, resignRequested });',
    replace: 'this.submit({ kind: "beaten", epoch, sentAt: sentAt && this.#now(), resignRequested });',
  }),
  inRunsOf({ instances: 3, pins: { aims: ["stale-grant"] } })("grant-window-from-the-answer", "trap 44", {
    file: LOOP,
    find: '({ epoch, sentAt }) => this.submit({ kind: "granted", attempt, epoch, sentAt }),',
    replace: '({ epoch }) => this.submit({ kind: "granted", attempt, epoch, sentAt: this.#now() }),',
  }),
  inRunsOf({ instances: 3, pins: { sleepy: true, aims: ["sleep"] } })("monotonic-clock-only", "trap 45", {
    file: WINDOW,
    find: "Math.min(deadline.monotonicMs - monotonicMs, deadline.wallMs - wallMs)",
    replace: "deadline.monotonicMs - monotonicMs + 0 * wallMs",
  }),
  inRunsOf({ instances: 3, pins: { sleepy: false, aims: ["set-back"] } })("wall-clock-only", "trap 45", {
    file: WINDOW,
    find: "Math.min(deadline.monotonicMs - monotonicMs, deadline.wallMs - wallMs)",
    replace: "deadline.wallMs - wallMs + 0 * monotonicMs",
  }),
  mutant("gate-trusts-a-flag", "trap 34", {
    file: GATE,
    find: 'if (leftMs === 0) return this.#refuse("suspended", options);',
    replace: 'if ((hold as { suspended?: boolean }).suspended === true) return this.#refuse("suspended", options);',
  }),
  mutant("no-margin", "clock rates", {
    file: WINDOW,
    find: "return timing.serverTimeoutMs - timing.marginMs;",
    replace: "return timing.serverTimeoutMs;",
  }),
  inRunsOf({ instances: 3, pins: { aims: ["stale-grant"] } })("late-grant-becomes-a-term", "trap 34", {
    file: MACHINE,
    find: "if (this.#state.lostEpoch === epoch || remainingMs(deadline, now.monotonicMs, now.wallMs) === 0) {",
    replace: "if (this.#state.lostEpoch === epoch) {",
  }),
  mutant("suspended-is-not-told", "transitions", {
    file: MACHINE,
    find: 'this.#transition(now, { kind: "suspended", epoch: state.epoch });',
  }),
  inRunsOf(ALONE)("late-beat-of-an-earlier-term", "epochs", {
    file: MACHINE,
    find: 'if (state.kind !== "leading" || state.epoch !== input.epoch) return;',
    replace: 'if (state.kind !== "leading") return;',
  }),
  inRunsOf(ALONE)("loss-of-an-earlier-term", "epochs", {
    file: LOOP,
    find: 'if (this.#machine.hold?.epoch === epoch) this.#options.complain("a heartbeat was not answered", error);',
    replace:
      'const held = this.#machine.hold?.epoch;\n        if (held !== undefined && held !== epoch) this.submit({ kind: "lost", epoch: held, reason: "lease-gone" });',
  }),
  mutant("released-before-the-work-settled", "trap 48", {
    file: LEAD,
    find: "term.windUp(reason);",
    replace: "term.windUp(reason);\n        await term.resign();",
  }),
  mutant(
    "campaign-before-the-work-settled",
    "one work",
    { file: LEAD, find: "if (!(await settlesWithin(on.clock, outcome, drainMs))) throw overrun(term, drainMs);" },
    { file: LEAD, find: "error: errorIn(await outcome) };", replace: "error: undefined };" },
  ),
  mutant(
    "elector-free-before-the-work-settled",
    "one work",
    {
      file: "electors/elector.ts",
      find: "if (unsettled === undefined) free();",
      replace: "if (unsettled === undefined || drained) free();",
    },
    {
      file: "electors/elector.ts",
      find: "let unsettled: Promise<unknown> | undefined;",
      replace: "let unsettled: Promise<unknown> | undefined;\n    const drained = true;",
    },
  ),
  mutant("an-answer-before-time", "time first", {
    file: MACHINE,
    find: "this.#effects = [];\n    this.#passTime(now);",
    replace: "this.#effects = [];",
  }),
  mutant("loss-ignored", "trap 42", {
    file: MACHINE,
    find: "if (this.#leads(input.epoch)) this.#end(now, input.reason);",
    replace: "if (this.#leads(input.epoch)) return;",
  }),
  mutant("last-chance-never-ends", "expiry", {
    file: MACHINE,
    find: 'return this.#end(now, "expired");',
    replace: "state.expiredMs = now.monotonicMs;",
  }),
  mutant("one-failed-beat-ends-the-term", "trap 42", {
    file: MACHINE,
    find: "state.beating = false;\n    state.nextBeatMs = now.monotonicMs + Math.min(",
    replace: 'return this.#end(now, "expired");\n    state.nextBeatMs = now.monotonicMs + Math.min(',
  }),
  mutant("failed-beat-is-not-sent-again", "trap 42", {
    file: MACHINE,
    find: "state.nextBeatMs = now.monotonicMs + Math.min(BEAT_RETRY_MS_MAX, this.#options.timing.heartbeatMs / 4);",
    replace: "state.nextBeatMs = Infinity + BEAT_RETRY_MS_MAX + now.monotonicMs;",
  }),
  mutant("campaign-given-up-and-not-abandoned", "trap 39", {
    file: MACHINE,
    find: 'if (this.#state.kind === "acquiring") this.#effects.push({ kind: "abandon" });',
  }),
  mutant("lost-hold-not-abandoned", "trap 39", {
    file: MACHINE,
    find: 'this.#ended(now, reason);\n    this.#effects.push({ kind: "abandon" });',
    replace: "this.#ended(now, reason);",
  }),
  mutant("nobody-goes-first", "hold-back", {
    file: MACHINE,
    find: "this.#holdBackUntilMs = now.monotonicMs + holdBackMs;",
    replace: "this.#holdBackUntilMs = now.monotonicMs + 0 * holdBackMs;",
  }),
  inRunsOf({ pins: { sleepy: false, aims: ["blind-blip"] } })("closed-gate-opens-by-itself", "transitions", {
    file: MACHINE,
    find: "state.deadline = OVER;\n      this.#transition",
    replace: "this.#transition",
  }),
  inRunsOf({ flavour: "session", pins: { aims: ["blind-beat"] } })("wall-clock-not-looked-at", "trap 45", {
    file: MACHINE,
    find: "return Math.min(beatMs, deadlineMs, endMs, state.lookMs);",
    replace: "return Math.min(beatMs, deadlineMs, endMs);",
  }),
  inRunsOf({ pins: { restlessness: 0.9, aims: ["force"] } })("outcome-of-a-lost-term-kept", "lead", {
    file: LEAD,
    find: "      return again(event.reason);",
    replace:
      '      {\n        const late = await outcome;\n        if (late.kind === "value") return { kind: "done", value: late.value };\n      }\n      return again(event.reason);',
  }),
  inRunsOf({ instances: 2, pins: { aims: ["server-restore"] } })("leads-in-an-epoch-of-an-older-state", "decision 35", {
    file: MACHINE,
    find: "if (epoch <= this.#state.floor) return this.#rewound(epoch, this.#state.floor);",
  }),
  inRunsOf({ instances: 3, pins: { aims: ["server-restore"] } })("epochs-of-others-do-not-count", "decision 35", {
    file: MACHINE,
    find: "this.#knownEpoch = Math.max(this.#knownEpoch, input.epoch);",
  }),
  inRunsOf({ pins: { hostile: true } })("what-a-callback-throws-reaches-the-loop", "trap 80", {
    file: "core/kit/user-code.ts",
    find: "  } catch (thrown) {\n    report(thrown);",
    replace: "  } catch (thrown) {\n    report(thrown);\n    throw thrown;",
  }),
];
