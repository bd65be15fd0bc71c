import { describe, expect, it } from "vitest";
import type { TransactionOutcome, TransactionView } from "../../client/index.ts";
import { committedText, outcomeObject, rolledBackText, unknownText, viewObject, viewsTable, viewText } from "./view.ts";

const A = "a".repeat(64);
const B = "b".repeat(64);
const ID = "0198a1c2-0000-7000-8000-000000000001";
const COMMITTED = {
  state: "committed",
  id: ID,
  term: 5,
  home: A,
  participants: [
    { backendHash: A, state: "applied", results: [{ version: 41 }, {}, { epoch: 7 }, { jobId: "j\u001b1" }] },
    { backendHash: B, state: "pending", results: [] },
  ],
} as const satisfies TransactionOutcome;
const REASON = { code: "VERSION_CONFLICT", message: "v has version 9", backendHash: B } as const;
const VIEW: TransactionView = {
  id: ID,
  state: "prepared",
  home: A,
  participants: [A, B],
  by: "mover",
  timeoutMs: 5_000,
  atMs: 1_700_000_000_000,
  locks: ["value orders/cursor", "scope orders"],
  results: [],
  reason: null,
  undelivered: 0,
  waitsFor: [A],
  isSettled: false,
  isInDoubt: true,
};

describe("an outcome as it is printed", () => {
  it("with what each island has answered", () => {
    expect(committedText(COMMITTED)).toBe(
      [
        `${ID} is committed, in term 5\n`,
        `ISLAND${" ".repeat(60)}STATE    RESULTS\n`,
        `${A}  applied  version 41, done, epoch 7, job j?1\n`,
        `${B}  pending  not heard of yet\n`,
      ].join(""),
    );
  });

  it("as a sentence where it was rolled back, or is not known", () => {
    const why = `VERSION_CONFLICT at island ${B}: v has version 9.`;
    expect(rolledBackText({ state: "rolled-back", id: ID, reason: REASON })).toBe(
      `transaction ${ID} was rolled back, and nothing of it was done: ${why}`,
    );
    const home = { ...REASON, backendHash: null };
    expect(rolledBackText({ state: "rolled-back", id: ID, reason: home })).toContain(": VERSION_CONFLICT: v has");
    const request = { id: ID, participants: [] };
    const unknown = { state: "unknown", id: ID, request } as const;
    expect(unknownText({ ...unknown, code: "OUTCOME_UNKNOWN", why: "no answer in time" })).toContain(
      `not known whether transaction ${ID} is committed: no answer in time. Run it again with --id ${ID}`,
    );
    const expired = unknownText({ ...unknown, code: "txn_expired", why: "the id is too old" });
    expect(expired).toContain("the id is too old. This id finds it out no more: look at the values, scopes and jobs");
    expect(expired).not.toContain("Run it again");
  });

  it("as an object, with nulls for what is not known", () => {
    const result = { version: null, epoch: null, job_id: null };
    expect(outcomeObject(COMMITTED)).toEqual({
      txn_id: ID,
      state: "committed",
      tc_term: 5,
      home: A,
      reason: null,
      participants: [
        {
          backend_hash: A,
          state: "applied",
          results: [{ ...result, version: 41 }, result, { ...result, epoch: 7 }, { ...result, job_id: "j\u001b1" }],
        },
        { backend_hash: B, state: "pending", results: [] },
      ],
    });
    expect(outcomeObject({ state: "rolled-back", id: ID, reason: REASON })).toEqual({
      txn_id: ID,
      state: "rolled_back",
      tc_term: null,
      home: null,
      reason: { code: "VERSION_CONFLICT", message: "v has version 9", backend_hash: B },
      participants: [],
    });
    const request = { id: ID, participants: [] };
    expect(outcomeObject({ state: "unknown", id: ID, request, code: "OUTCOME_UNKNOWN", why: "silence" })).toMatchObject(
      {
        state: "unknown",
        reason: { code: "OUTCOME_UNKNOWN", message: "silence" },
      },
    );
  });
});

describe("what an island knows", () => {
  it("line by line", () => {
    expect(viewText(VIEW)).toBe(
      [
        `id         ${ID}\n`,
        "state      prepared, in doubt\n",
        "since      2023-11-14T22:13:20.000Z\n",
        "by         mover\n",
        `home       ${A}\n`,
        `islands    ${A}\n`,
        `           ${B}\n`,
        "locks      value orders/cursor\n",
        "           scope orders\n",
        `waits for  ${A}\n`,
      ].join(""),
    );
    const decided = { ...VIEW, locks: [], results: [{ jobId: "j1" }], undelivered: 1, waitsFor: [B], isInDoubt: false };
    const text = viewText({ ...decided, state: "rolled-back", reason: REASON, isSettled: true });
    for (const line of [
      "rolled back, settled",
      "job j1",
      "VERSION_CONFLICT: v has",
      "1 not delivered yet",
      `waits for  ${B}`,
    ])
      expect(text).toContain(line);
  });

  it("as a table with short hashes", () => {
    const waiting = { ...VIEW, state: "committed", locks: [], waitsFor: [B] } as const;
    expect(viewsTable([VIEW, waiting])).toBe(
      [
        `ID${" ".repeat(36)}STATE                SINCE                     HOME          BY     WAITS FOR     LOCKS\n`,
        `${ID}  prepared, in doubt   2023-11-14T22:13:20.000Z  aaaaaaaaaaaa  mover  aaaaaaaaaaaa  value orders/cursor, scope orders\n`,
        `${ID}  committed, in doubt  2023-11-14T22:13:20.000Z  aaaaaaaaaaaa  mover  bbbbbbbbbbbb  -\n`,
      ].join(""),
    );
    expect(viewsTable([])).toBe("no transactions\n");
  });

  it("as an object", () => {
    expect(viewObject(VIEW)).toEqual({
      txn_id: ID,
      state: "prepared",
      home: A,
      participants: [A, B],
      by: "mover",
      timeout_ms: 5_000,
      at: "2023-11-14T22:13:20.000Z",
      locks: ["value orders/cursor", "scope orders"],
      results: [],
      reason: null,
      undelivered: 0,
      waits_for: [A],
      settled: false,
      in_doubt: true,
    });
  });
});
