// What each answer, and each silence, comes to.

import { describe, expect, it } from "vitest";
import type { ErrorCode } from "../kit/errors.ts";
import {
  afterAsking,
  afterCommit,
  afterHome,
  type AfterHome,
  afterPrepare,
  errorOfRollback,
  type Heard,
  isCommitted,
  isUndecidedAtHome,
} from "./course.ts";
import type { TxnAnswer, TxnPhase, TxnReason, TxnResult } from "./model.ts";

const [HOME, B, C] = ["a".repeat(64), "b".repeat(64), "c".repeat(64)] as const;
const RESULTS: readonly TxnResult[] = [{ version: 7, epoch: null, jobId: null }];
const REASON: TxnReason = { code: "VERSION_CONFLICT", message: "It has version 3.", backendHash: B };

function is(phase: TxnPhase | null, results: readonly TxnResult[] = [], reason: TxnReason | null = null): TxnAnswer {
  return { kind: "txn", phase, results, reason };
}
function refused(code: ErrorCode): TxnAnswer {
  return { kind: "refused", code, message: `because of ${code}` };
}
/** Of every kind that an island can answer, and what never is one. */
const STALE = refused("tc_term_stale");
const OTHERS: readonly TxnAnswer[] = [
  is("staged"),
  is(null),
  { kind: "settled", ids: [] },
  { kind: "recovered", open: [], next: null },
];
const REFUSALS: readonly ErrorCode[] = [
  "txn_locked",
  "VERSION_CONFLICT",
  "STALE_EPOCH",
  "QUOTA_EXCEEDED",
  "BAD_REQUEST",
  "txn_conflict",
  "txn_expired",
  "invalid_txn_id",
  "txn_backend_mismatch",
  "txn_not_found",
  "tc_cluster_mismatch",
  "OVERLOADED",
  "NOT_SUPPORTED",
];

describe("⓪ of a home that decided nothing the last time", () => {
  const recovered = { kind: "recovered", open: [], next: null } as const;

  it("nothing is begun while it does not answer, or says that it takes nothing new", () => {
    expect(afterAsking(HOME, recovered)).toEqual({ kind: "begin" });
    for (const code of ["DISK_FULL", "CLUSTER_PAUSED", "NOT_SUPPORTED"] as const) {
      const why = { code, message: `because of ${code}` };
      expect(afterAsking(HOME, { ...recovered, refusesNew: why })).toEqual({ kind: "refused", ...why });
      expect(afterAsking(HOME, refused(code))).toEqual({ kind: "refused", ...why });
    }
    const others: readonly Heard[] = [
      "silent",
      "lost",
      STALE,
      refused("tc_cluster_mismatch"),
      refused("OVERLOADED"),
      is(null),
    ];
    const later = { code: "INTERNAL", message: "of a later release" } as const;
    for (const heard of [...others, { ...recovered, refusesNew: later }])
      expect(afterAsking(HOME, heard).kind).toBe("unknown");
  });

  it("it is one that is silent, or refuses without a record; a definite refusal and a later term are of the transaction", () => {
    const lasting = ["DISK_FULL", "tc_cluster_mismatch", "txn_backend_mismatch"] as const;
    for (const heard of ["silent", ...lasting.map(refused)] as const) expect(isUndecidedAtHome(heard)).toBe(true);
    const definite = [refused("txn_conflict"), refused("txn_expired"), is("rolled-back"), is("committed")];
    for (const heard of ["lost", STALE, ...definite] as const) expect(isUndecidedAtHome(heard)).toBe(false);
  });
});

describe("① of two islands that prepare", () => {
  const after = (b: Heard | undefined, c: Heard | undefined) => {
    const heard = new Map<string, Heard>();
    if (b !== undefined) heard.set(B, b);
    if (c !== undefined) heard.set(C, c);
    return afterPrepare([B, C], heard);
  };
  const PREPARED = is("prepared");

  it("is over when both have prepared, or were committed by an earlier attempt", () => {
    for (const b of [PREPARED, is("committed", RESULTS)]) {
      for (const c of [PREPARED, is("committed")]) expect(after(b, c)).toEqual({ kind: "commit" });
    }
    expect(afterPrepare([], new Map())).toEqual({ kind: "commit" });
  });

  it("commit-without-all-prepared: waits while one of them has not answered", () => {
    for (const [b, c] of [
      [PREPARED, undefined],
      [undefined, PREPARED],
      [undefined, undefined],
    ] as const)
      expect(after(b, c)).toEqual({ kind: "wait" });
  });

  it.each(REFUSALS)("%s of either is why it is rolled back, whatever the other one says", (code) => {
    for (const other of [undefined, PREPARED, "silent", ...OTHERS] as const) {
      expect(after(refused(code), other)).toMatchObject({ kind: "rollback", reason: { code, backendHash: B } });
    }
    expect(after(PREPARED, refused(code))).toEqual({
      kind: "rollback",
      reason: { code, message: `because of ${code}`, backendHash: C },
    });
    expect(after(undefined, refused(code)).kind).toBe("rollback");
  });

  it.each<[string, Heard]>([
    ["silence", "silent"],
    ["what is no answer to a prepare", is("staged")],
    ["an island that does not know it", is(null)],
  ])("%s is an island that can't be reached", (_what, heard) => {
    expect(after(PREPARED, heard)).toMatchObject({
      kind: "rollback",
      reason: { code: "txn_fanout_failed", backendHash: C },
    });
  });

  it("an island where it was rolled back says why", () => {
    expect(after(is("rolled-back", [], REASON), undefined)).toEqual({ kind: "rollback", reason: REASON });
    expect(after(is("rolled-back"), undefined)).toMatchObject({ kind: "rollback", reason: { backendHash: B } });
  });

  it.each<[string, Heard]>([
    ["stale-term-told-as-rollback: a later term", STALE],
    ["the gate is closed", "lost"],
  ])("%s stops it, and rolls nothing back", (_what, heard) => {
    for (const other of [undefined, PREPARED, "silent", refused("txn_locked"), is("rolled-back")] as const) {
      expect(after(heard, other).kind).toBe("stop");
      expect(after(other, heard).kind).toBe("stop");
    }
  });
});

describe("home's answer", () => {
  const BOTH = ["commit", "rollback"] as const;

  it.each(BOTH)("to %s is the decision, whichever it is", (asked) => {
    expect(afterHome(HOME, asked, is("committed", RESULTS))).toEqual({ kind: "committed", results: RESULTS });
    expect(afterHome(HOME, asked, is("rolled-back", [], REASON))).toEqual({ kind: "rolled-back", reason: REASON });
  });

  it.each(BOTH)("to %s: silence, a closed gate and what is no decision leave it unknown", (asked) => {
    for (const heard of ["silent", "lost", is("prepared"), ...OTHERS] as const)
      expect(afterHome(HOME, asked, heard).kind).toBe("unknown");
  });

  it.each(BOTH)("stale-term-told-as-rollback: to %s a later term leaves it unknown", (asked) => {
    expect(afterHome(HOME, asked, STALE).kind).toBe("unknown");
  });

  it.each(["txn_conflict", "txn_expired", "invalid_txn_id"] as const)(
    "other-body-same-id: %s is definite, and neither a commit nor a rollback of this body",
    (code) => {
      for (const asked of BOTH) expect(afterHome(HOME, asked, refused(code))).toMatchObject({ kind: "refused", code });
    },
  );

  it.each(REFUSALS.filter((code) => !["txn_conflict", "txn_expired", "invalid_txn_id"].includes(code)))(
    "%s, to a commit, is no decision: one is asked for; to a rollback it is none either",
    (code) => {
      expect(afterHome(HOME, "commit", refused(code))).toEqual({
        kind: "rollback",
        reason: { code, message: `because of ${code}`, backendHash: null },
      } satisfies AfterHome);
      expect(afterHome(HOME, "rollback", refused(code)).kind).toBe("unknown");
    },
  );
});

describe("③ after home has committed", () => {
  it("is applied where it is committed, with what came of it", () => {
    expect(afterCommit(is("committed", RESULTS))).toEqual({ state: "applied", results: RESULTS });
  });

  it("is applied where it was done so long ago that it is forgotten", () => {
    expect(afterCommit(refused("txn_expired"))).toEqual({ state: "applied", results: [] });
  });

  it("conflict-is-applied: a conflict is not", () => {
    expect(afterCommit(refused("txn_conflict")).state).toBe("pending");
  });

  it("is pending where nothing is known of it yet", () => {
    const silences: readonly Heard[] = ["silent", "lost", STALE, is("prepared"), ...OTHERS];
    const refusals = REFUSALS.filter((code) => code !== "txn_expired").map((code) => refused(code));
    for (const heard of [...silences, ...refusals]) expect(afterCommit(heard).state).toBe("pending");
  });

  it("an operator's word at one island is shown as it is", () => {
    expect(afterCommit(is("rolled-back")).state).toBe("rolled-back");
  });
});

it("a rollback for a conflict or a silence is returned as an error; one for the age of its id is an outcome", () => {
  const errors = REFUSALS.filter((code) => errorOfRollback({ ...REASON, code }) !== null);
  expect(errors).toEqual(["txn_conflict"]);
  expect(errorOfRollback({ ...REASON, code: "txn_fanout_failed" })).toBe("txn_fanout_failed");
  expect(errorOfRollback(null)).toBe(null);
});

it("only a commit is one", () => {
  expect(isCommitted(is("committed"))).toBe(true);
  for (const heard of [undefined, "silent", "lost", STALE, is("prepared"), ...OTHERS] as const)
    expect(isCommitted(heard)).toBe(false);
});
