import { expect, it } from "vitest";
import { heldList, heldText } from "./held-list.ts";

const rows = (ids: string, state = "pending") => ids.split("").map((id) => ({ id, state }));

it("rows keep their places and show their newest state, and what has come since is counted", () => {
  const held = heldList(rows("cba"), rows("edcb", "running"));
  expect(held.rows).toEqual([...rows("cb", "running"), ...rows("a")]);
  expect(heldText(held, false)).toBe("2 newer: show them");
});

it("while nothing has moved there is nothing to show", () => {
  expect(heldText(heldList(rows("cba"), rows("cba", "running")), false)).toBeNull();
});

it("where none of the page is left there may be more than a page of newer ones", () => {
  expect(heldText(heldList(rows("cba"), rows("zyx")), true)).toBe("3 or more newer: show them");
});

it("a row that no longer fits stays where it is, until the list is let go", () => {
  const held = heldList(rows("cba"), rows("ca"));
  expect(held.rows.map(({ id }) => id).join("")).toBe("cba");
  expect(heldText(held, false)).toBe("Others fit now: show them");
});
