import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

test("so many work at once, the next wait in order, and who comes too late is refused", async () => {
  const turns = new Turns({ atOnceMax: 2, waitingMax: 1, doing: "things are done" });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const work = (name: string) => (): Promise<string> => {
    begun.push(name);
    return new Promise((resolve) => ends.push(() => resolve(name)));
  };
  const [a, b, c] = [turns.take(work("a")), turns.take(work("b")), turns.take(work("c"))];
  await expect(turns.take(work("d"))).rejects.toMatchObject({ code: "OVERLOADED" });
  expect(begun).toEqual(["a", "b"]);
  ends[0]?.();
  await expect(a).resolves.toBe("a");
  expect(begun).toEqual(["a", "b", "c"]);
  for (const end of ends) end();
  await expect(Promise.all([b, c])).resolves.toEqual(["b", "c"]);
});

test("a failure gives its turn back", async () => {
  const turns = new Turns({ atOnceMax: 1, waitingMax: 0, doing: "things are done" });
  await expect(turns.take(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  await expect(turns.take(() => Promise.resolve(1))).resolves.toBe(1);
});
