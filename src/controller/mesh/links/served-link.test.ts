// What a site that dialled is sent: one message when the last one has found room, wishes before pages, heads each second.

import { expect, it } from "vitest";
import type { Page } from "../../../core/mesh/model.ts";
import { ManualClock, settled } from "../../../loops/test-clock.ts";
import { OwnHeads } from "./own-heads.ts";
import { HEADS_QUIET_EVERY } from "../limits.ts";
import { ServedLink } from "./served-link.ts";

const introduction = { id: "a", url: "http://a:1", name: "a", metadata: {} };
const page: Page = { line: "a.1", after: 4, items: ["{}", "{}"], checkpoint: "" };

function stage() {
  const clock = new ManualClock();
  const sizes = new Map([["a.1", 6]]);
  const lines = {
    lines: () => [...sizes.keys()],
    size: (line: string) => sizes.get(line) ?? 0,
    checkpoint: async (line: string) => `${line} ${sizes.get(line)}`,
  };
  const heads = new OwnHeads(lines, clock);
  const urls = () => ["http://n1:1", "http://n2:1"];
  const link = new ServedLink({
    id: "from b",
    controller: "b",
    clock,
    introduction: Promise.resolve(introduction),
    heads: heads.forLink(),
    urls,
  });
  return { clock, link, sizes };
}

it("greets, shows its heads, then sends wishes before a page; the page is sent when the next message is asked for", async () => {
  const { link } = stage();
  let outcome: unknown = null;
  void link.send([page]).then((sent) => (outcome = sent));
  link.ask({ kind: "graft", graft: { line: "b.1", after: 3 } });
  link.ask({ kind: "prune", line: "c.1" });
  link.ask({ kind: "graft", graft: { line: "b.1", after: 5 } });
  expect(await link.next()).toEqual({ hello: introduction });
  const messages = [await link.next(), await link.next(), await link.next()];
  expect(messages).toContainEqual({ heads: ["a.1 6"], at: expect.any(Number) as number });
  expect(
    messages.filter((one) => one !== null && !("heads" in one)),
    "the last wish of a line",
  ).toEqual([{ prune: { line: "c.1" } }, { graft: { line: "b.1", after: 5 } }]);
  expect(await link.next()).toEqual({ page });
  await settled();
  expect(outcome, "it may still be on its way to the socket").toBeNull();
  void link.next();
  await settled();
  expect(outcome).toEqual({ kind: "taken", through: 6 });
});

it("several pages of one send go one after the other, with wishes between them, and are sent when the last one is", async () => {
  const { link } = stage();
  await link.next();
  await link.next();
  const following = { ...page, after: 6, items: ["x", "y"] };
  let outcome: unknown = null;
  void link.send([page, following]).then((sent) => (outcome = sent));
  expect(await link.next()).toEqual({ page });
  link.ask({ kind: "prune", line: "c.1" });
  expect(await link.next()).toEqual({ prune: { line: "c.1" } });
  expect(await link.next()).toEqual({ page: following });
  await settled();
  expect(outcome).toBeNull();
  void link.next();
  await settled();
  expect(outcome).toEqual({ kind: "taken", through: 8 });
});

it("sends heads again after a second, and only those that changed", async () => {
  const { clock, link, sizes } = stage();
  await link.next();
  await link.next();
  sizes.set("b.1", 2);
  const next = link.next();
  await clock.advance(1_000);
  expect(await next).toMatchObject({ heads: ["b.1 2"] });
  let isSent = false;
  const silent = link.next().finally(() => (isSent = true));
  await clock.advance((HEADS_QUIET_EVERY - 1) * 1_000);
  expect(isSent).toBe(false);
  await clock.advance(1_000);
  expect(await silent, "also where nothing changed: it is a sign of life").toMatchObject({ heads: [] });
});

it("says good-bye with the addresses of its site, once, and what was on its way is not known to be sent", async () => {
  const { link } = stage();
  await link.next();
  await link.next();
  const sent = link.send([page]);
  sent.catch(() => undefined);
  expect(await link.next()).toEqual({ page });
  link.close();
  await expect(sent).rejects.toThrow("over");
  expect(await link.next()).toEqual({ bye: true, urls: ["http://n1:1", "http://n2:1"] });
  expect(await link.next()).toBeNull();
  await expect(link.send([page])).rejects.toThrow("over");
});
