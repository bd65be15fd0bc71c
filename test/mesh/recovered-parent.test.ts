// A parent that was recovered, and a child that meets it only then: the parent's line continues the one before, so the child needs both, and hears of
// them from the parent alone. Real servers: what a parent says of itself on a stream is read by the driver, which the simulator does not have.

import { afterAll, beforeAll, it } from "vitest";
import { done, leadsAlone } from "../server/test-last-resorts.ts";
import { waitFor } from "../servers/index.ts";
import { ringOf } from "./test-site.ts";
import { SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

let parent: TestSite;
let child: TestSite | undefined;

beforeAll(async () => {
  parent = await TestSite.start({ id: "parent", children: ["child"] });
  const { node } = parent;
  await ringOf(node, 1);
  await parent.submit(3);
  await node.term();
  await done("server", "recover", "--force-new-cluster", "--config", node.configFile);
  await leadsAlone(node);
  await ringOf(node, 1, 2);
  await parent.submit(3);
}, SITES_START_MS);

afterAll(() => Promise.all([parent?.end(), child?.end()]), 60_000);

it(
  "gets both lines of the parent",
  async () => {
    child = await TestSite.start({ id: "child", parents: [parent.url] });
    const ofParent = async (site: TestSite): Promise<readonly string[]> =>
      Array.from(await site.heads(), ([line, { root }]) => `${line} ${root}`)
        .filter((head) => head.startsWith("parent."))
        .toSorted();
    const isSame = async (): Promise<boolean> => {
      const own = await ofParent(parent);
      return own.length === 2 && own.join() === (await ofParent(child!)).join();
    };
    await waitFor("the child to have both lines", isSame, SPREAD_MS / 4);
  },
  SITES_START_MS,
);
