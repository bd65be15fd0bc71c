// The oracle of one elector: what it counts in one term is no reproach in the next one.

import { describe, expect, it } from "vitest";
import type { Transition } from "../../core/trust/transitions.ts";
import { Oracle } from "./oracle.ts";

const TIMING = {
  serverTimeoutMs: 1_500,
  marginMs: 375,
  heartbeatMs: 250,
  retryMinMs: 200,
  retryMaxMs: 800,
  holdBackMs: 500,
  releaseTimeoutMs: 1_000,
};
const STEP_MS = 10;
/** A term that is overdue since its first check must have ended after two heartbeats, its last chance and some slack: 1,200 ms. */
const ALLOWED_MS = 1_190;

function world() {
  let nowMs = 0;
  const findings: string[] = [];
  const oracle = new Oracle(
    () => nowMs,
    { timing: TIMING, drainMs: 200, trustTrueMsMax: 1_125 },
    (_node, error) => findings.push(error.message),
  );
  const instance = oracle.instance("n1");
  const now = () => ({ monotonicMs: nowMs, wallMs: nowMs });
  return {
    findings,
    transition: (transition: Partial<Transition>) =>
      instance.transition(now(), { scope: "s", identity: "n1", atMs: nowMs, ...transition } as Transition, true),
    passOverdue: (forMs: number) => {
      for (const endMs = nowMs + forMs; nowMs < endMs;) {
        nowMs += STEP_MS;
        instance.look(now());
      }
    },
  };
}

describe("a term without a proof", () => {
  it("is a finding once its time and its last chance are over", () => {
    const { findings, transition, passOverdue } = world();
    transition({ kind: "campaigning" });
    transition({ kind: "leading", epoch: 1 });
    passOverdue(ALLOWED_MS);
    expect(findings).toEqual([]);
    passOverdue(4 * STEP_MS);
    expect(findings).toContain("a term goes on without a proof after its last chance");
  });

  it("has its own count: what the term before it was overdue does not shorten it (seed 194668521)", () => {
    const { findings, transition, passOverdue } = world();
    transition({ kind: "campaigning" });
    transition({ kind: "leading", epoch: 1 });
    passOverdue(ALLOWED_MS);
    transition({ kind: "ended", epoch: 1, reason: "expired", heldMs: ALLOWED_MS });
    transition({ kind: "campaigning" });
    transition({ kind: "leading", epoch: 2 });
    passOverdue(ALLOWED_MS);
    expect(findings).toEqual([]);
  });
});
