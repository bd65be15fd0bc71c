// The page of islands in a real Chromium, in front of three real islands over TLS: who leads and votes, and what it says when a voter, and then the
// majority, is gone. A cluster without coordinators has no such page.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ISLANDS_MS_MAX, TestIslands } from "../coordinators/test-islands.ts";
import { OPERATOR_KEY, startTenureCluster } from "../servers/index.ts";
import { browserPath, buildWeb, openPage, startBrowser, type WatchedPage } from "./test-browser.ts";

const noBrowser = browserPath() === undefined;
if (noBrowser) console.log("there is no chromium on PATH: the page of islands is not tested in a browser");

/** What is looked at by people; nothing is written where it is not set. */
const pictures = process.env["TENURE_TEST_PICTURES"];
const POLL = { timeout: 60_000, interval: 250 };
interface Hashed {
  readonly backend_hash: string;
}

const IDS = ["island-1", "island-2", "island-3"] as const;

const text = async (page: Page, selector: string): Promise<string> =>
  (await page.locator(selector).first().textContent({ timeout: 1_000 })) ?? "";
const shown = (page: Page, selector: string) => expect.poll(() => text(page, selector), POLL);
const there = (page: Page, selector: string) => expect.poll(() => page.locator(selector).count(), POLL);

async function picture(page: Page, name: string): Promise<void> {
  if (pictures === undefined) return;
  mkdirSync(pictures, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`) });
  }
}

async function opened(browser: Browser, url: string, query: string): Promise<WatchedPage> {
  // The authority of the test is not the browser's.
  const watched = await openPage(browser, { ignoreHTTPSErrors: true });
  await watched.page.goto(`${url}/${query}#key=${encodeURIComponent(OPERATOR_KEY)}`);
  return watched;
}

describe.skipIf(noBrowser)("the page of islands", () => {
  let islands: TestIslands;
  let browser: Browser;

  beforeAll(async () => {
    buildWeb();
    [islands, browser] = await Promise.all([TestIslands.start(...IDS), startBrowser()]);
  }, ISLANDS_MS_MAX * 2);
  afterAll(async () => {
    await browser?.close();
    await islands?.end();
  });

  it(
    "lists transactions in doubt: since when, what is locked, their home, and where the island is that is waited for",
    async () => {
      await using watched = await opened(browser, islands.node("island-1").url, "?view=islands");
      const { page, errors } = watched;
      await shown(page, "section[aria-labelledby=txn-title] .empty").toBe("None waits for another island.");
      const now = Date.now();
      const id = (last: number): string => `01980000-0000-7000-8000-00000000000${last}`;
      await page.route("**/v1/islands", async (route) => {
        const response = await route.fetch();
        const view = (await response.json()) as { self: Hashed; registry: (Hashed & { endpoint: string })[] };
        const own = view.self.backend_hash;
        const other = view.registry.find(({ backend_hash: hash }) => hash !== own)!.backend_hash;
        const common = { timeout_ms: 5_000, locks_count: 1 };
        const waiting = [
          {
            txn_id: id(1),
            home: other,
            phase: "prepared",
            at_ms: now - 65_000,
            locks: ["value orders/cursor"],
            waits_for: [other],
          },
          { txn_id: id(2), home: own, phase: "committed", at_ms: now - 100, locks: [], waits_for: [other] },
        ].map((one) => ({ ...common, ...one }));
        const counts = { prepared: 1, in_doubt: 1, oldest_in_doubt_ms: 60_000, undelivered_jobs: 3 };
        const transactions = { ...counts, waiting, is_all: false };
        await route.fulfill({ response, json: { ...view, transactions } });
      });
      await shown(page, "#txn-advice").toContain("1 transaction is in doubt, the oldest for 60 s");
      await shown(page, "#txn-waiting tbody tr:first-child").toMatch(
        new RegExp(`^${id(1)}prepared, in doubt.*value orders/cursor.*https://127`),
      );
      await shown(page, "#txn-waiting tbody tr:nth-child(2)").toMatch(/committed.*this island/);
      await shown(page, "#txn-jobs").toBe("3");
      for (const width of [1280, 420]) {
        await page.setViewportSize({ width, height: 900 });
        expect(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
        await picture(page, `islands-transactions-${width}`);
      }
      await page.unrouteAll({ behavior: "ignoreErrors" });
      expect(errors).toEqual([]);
    },
    POLL.timeout * 2,
  );

  it(
    "shows who leads and votes, and says what to do when a voter and then the majority is gone",
    async () => {
      const leader = (await islands.leader())!;
      const [first, second] = IDS.filter((id) => id !== leader) as [string, string];
      await using watched = await opened(browser, islands.node(leader).url, "");
      const { page, errors, hosts } = watched;
      await page.getByRole("link", { name: "Islands" }).click({ timeout: POLL.timeout });
      await shown(page, "#tc-leader").toMatch(new RegExp(`^${leader} leads in term \\d+$`));
      await shown(page, "#tc-quorum").toBe("2 of 3 voters");
      await there(page, "#tc-nodes .badge.good").toBe(3);
      await there(page, "#tc-registry tbody tr").toBe(3);
      await there(page, "#tc-advice li").toBe(0);
      await picture(page, "islands");

      await islands.node(first).kill9();
      await shown(page, "#tc-advice").toMatch(new RegExp(`do not answer the leader: ${first}\\. .*nobody leads`));
      await shown(page, "#tc-nodes tr:has(.badge.bad)").toMatch(new RegExp(`^${first}.*silent`));
      await picture(page, "islands-silent");

      await islands.node(second).kill9();
      await shown(page, "#tc-leader").toBe("nobody leads");
      await shown(page, "#tc-advice").toContain("a leader needs 2 of 3 voters.");
      await picture(page, "islands-nobody");
      expect(errors).toEqual([]);
      expect([...hosts]).toEqual([islands.node(leader).url]);
    },
    POLL.timeout * 4,
  );

  it(
    "is not listed where there are no coordinators, and asks for nothing there",
    async () => {
      const alone = await startTenureCluster({ nodes: 1 });
      try {
        await using watched = await opened(browser, alone.nodes[0]!.url, "");
        await shown(watched.page, "#members, table").not.toBe("");
        expect(await watched.page.getByRole("link", { name: "Sites" }).count()).toBe(1);
        expect(await watched.page.getByRole("link", { name: "Islands" }).count()).toBe(0);
        await using bookmark = await opened(browser, alone.nodes[0]!.url, "?view=islands");
        await shown(bookmark.page, ".empty").toContain("[tc] join");
        expect([...watched.errors, ...bookmark.errors]).toEqual([]);
        expect(bookmark.paths).not.toContain("/v1/islands");
      } finally {
        await alone.end();
      }
    },
    ISLANDS_MS_MAX * 2,
  );
});
