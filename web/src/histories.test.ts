import { expect, it } from "vitest";
import { compareHistories, type WholeHistory } from "./histories.ts";

/** A history is its letters; its root for a size is the first so many of them. */
const whole = (nodeId: string, letters: string): WholeHistory => ({
  nodeId,
  url: letters,
  through: letters.length,
  root: letters,
});
const rootAt = async (url: string, size: number): Promise<string> => url.slice(0, size);

it("histories of which each is the beginning of the next are the same, in whatever order they come", async () => {
  const three = [whole("n1", "abcd"), whole("n2", "ab"), whole("n3", "abcd")];
  expect(await compareHistories(three, rootAt)).toEqual({ state: "same" });
});

it("two whole histories that are not the same differ, however long each is", async () => {
  expect(await compareHistories([whole("n1", "abc"), whole("n2", "abx")], rootAt)).toEqual({
    state: "differ",
    one: "n1",
    other: "n2",
    through: 3,
  });
  const longer = [whole("n1", "abcdef"), whole("n2", "ab"), whole("n3", "abx")];
  expect(await compareHistories(longer, rootAt)).toEqual({ state: "differ", one: "n3", other: "n1", through: 3 });
});

it("what can't be compared is neither the same nor different", async () => {
  const gone = async (): Promise<string> => {
    throw new Error("compacted");
  };
  expect(await compareHistories([whole("n1", "a"), whole("n2", "ab")], gone)).toMatchObject({
    state: "unknown",
    why: "compacted",
  });
  expect(await compareHistories([whole("n1", "ab"), whole("n2", "")], rootAt)).toBeNull();
});
