// Which homes are asked before anything is prepared for them.

import { expect, it } from "vitest";
import type { TxnAnswer } from "../../../core/txn/model.ts";
import { Undeciding } from "./undeciding.ts";

const HOME = "a".repeat(64);
const PREPARED: TxnAnswer = { kind: "txn", phase: "prepared", results: [], reason: null };
const RECOVERED: TxnAnswer = { kind: "recovered", open: [], next: null };
const FULL = { code: "DISK_FULL", message: "no room" } as const;
const REFUSED: TxnAnswer = { kind: "refused", ...FULL };

function after(...notes: readonly (readonly [Parameters<Undeciding["note"]>[1], TxnAnswer | "silent", boolean])[]) {
  const homes = new Undeciding();
  for (const [kind, heard, isHome] of notes) homes.note(HOME, kind, heard, isHome);
  return homes.has(HOME);
}

it("one that was silent is asked until it answers anything; as a participant its silence says nothing of it as a home", () => {
  expect(after(["commit", "silent", true])).toBe(true);
  expect(after(["prepare", "silent", false])).toBe(false);
  expect(after(["commit", "silent", true], ["prepare", PREPARED, false])).toBe(false);
  expect(after(["commit", "silent", true], ["recover", RECOVERED, true])).toBe(false);
  expect(after(["commit", "silent", true], ["prepare", REFUSED, false])).toBe(true);
});

it("one that refused is asked until it says that it decides, whatever it does meanwhile of what was promised before", () => {
  expect(after(["commit", REFUSED, true])).toBe(true);
  expect(after(["commit", REFUSED, true], ["rollback", { ...PREPARED, phase: "rolled-back" }, true])).toBe(true);
  expect(after(["commit", REFUSED, true], ["commit", { ...PREPARED, phase: "committed" }, false])).toBe(true);
  expect(after(["commit", REFUSED, true], ["recover", "silent", true], ["commit", PREPARED, false])).toBe(true);
  expect(after(["commit", REFUSED, true], ["recover", { ...RECOVERED, refusesNew: FULL }, true])).toBe(true);
  expect(after(["commit", REFUSED, true], ["recover", RECOVERED, true])).toBe(false);
});
