// The page of sites in a real Chromium, in front of three real sites: a hub, and two that dial it. One of these is cut off while the page of the hub
// is open, and healed: the picture, the list of jobs and the events follow. What is verified is verified in the browser.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { haveTheSame, SITES_START_MS, SPREAD_MS, TestSite } from "../mesh/test-sites.ts";
import { OPERATOR_KEY, startProxy, startTenureCluster, type TcpProxy } from "../servers/index.ts";
import { browserPath, buildWeb, openPage, startBrowser, type WatchedPage } from "./test-browser.ts";

const noBrowser = browserPath() === undefined;
if (noBrowser) console.log("there is no chromium on PATH: the page of sites is not tested in a browser");

/** What is looked at by people; nothing is written where it is not set. */
const pictures = process.env["TENURE_TEST_PICTURES"];

const POLL = { timeout: SPREAD_MS, interval: 250 };
/** Of what is drawn too. */
const text = async (page: Page, selector: string): Promise<string> =>
  (await page.locator(selector).first().textContent({ timeout: 1_000 })) ?? "";
const shown = (page: Page, selector: string) => expect.poll(() => text(page, selector), POLL);
const there = (page: Page, selector: string) => expect.poll(() => page.locator(selector).count(), POLL);

async function picture(page: Page, name: string): Promise<void> {
  if (pictures === undefined) return;
  mkdirSync(pictures, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const part of ["sites", "mesh-jobs", "mesh-events"]) {
      const section = page.locator(`section[aria-labelledby=${part}-title]`);
      await section.evaluate((element) => element.scrollIntoView({ block: "center" }));
      await page.screenshot({ path: join(pictures, `${name}-${part}-${colorScheme}.png`) });
    }
  }
}

async function opened(browser: Browser, url: string, query = "?view=sites"): Promise<WatchedPage> {
  const watched = await openPage(browser);
  await watched.page.goto(`${url}/${query}#key=${encodeURIComponent(OPERATOR_KEY)}`);
  return watched;
}

describe.skipIf(noBrowser)("the page of sites", () => {
  let hub: TestSite;
  let east: TestSite;
  let west: TestSite;
  let proxy: TcpProxy;
  let browser: Browser;

  beforeAll(async () => {
    buildWeb();
    [hub, browser] = await Promise.all([TestSite.start({ id: "hub", children: ["east", "west"] }), startBrowser()]);
    const { hostname, port } = new URL(hub.url);
    proxy = await startProxy({ host: hostname, port: Number(port) });
    [east, west] = await Promise.all([
      TestSite.start({ id: "east", parents: [hub.url] }),
      TestSite.start({ id: "west", parents: [`http://127.0.0.1:${proxy.port}`] }),
    ]);
    await Promise.all([hub, east, west].map((site) => site.submit(2)));
    await haveTheSame([hub, east, west]);
  }, SITES_START_MS);

  afterAll(async () => {
    await browser?.close();
    await Promise.all([hub, east, west].map((site) => site?.end()));
    await proxy?.end();
  }, SPREAD_MS);

  it(
    "shows links as they are measured, and follows a site that is cut off and comes back",
    async () => {
      await using watched = await opened(browser, hub.url);
      const { page, errors, hosts } = watched;
      let beginnings = 0;
      page.on("request", (request) => {
        const { pathname, searchParams } = new URL(request.url());
        if (pathname === "/v1/mesh/events" && !searchParams.has("after_arrival")) beginnings++;
      });
      await shown(page, "#own-site").toMatch(/^hub\b/);
      await there(page, ".edge.live").toBe(2);
      await there(page, "#mesh-jobs tbody tr").toBe(6);
      await shown(page, "[data-site=west] .site-about").toMatch(/^\d+ events$/);
      await picture(page, "linked");

      proxy.cut();
      await there(page, ".edge.stale, .edge.down").toBe(1);
      await there(page, ".edge.live").toBe(1);
      await shown(page, "#sites tbody").toMatch(/west.*(silent|cut off)/);
      await Promise.all([west.submit(1), east.submit(1)]);
      // What the other one wrote is here, and of the one that is cut off it is shown how old its jobs are.
      await there(page, "#mesh-jobs tbody tr").toBe(7);
      await there(page, "#mesh-jobs tr:has(.badge.busy)").toBe(2);
      await shown(page, "#mesh-jobs tr:has(.badge.busy)").toMatch(/west.*\d s ago/);
      // The link ends, and does not vanish with that.
      proxy.reset();
      await there(page, ".edge.down").toBe(1);
      await shown(page, ".edge.down text").toMatch(/^cut off, heard \d+ s ago$/);
      await shown(page, "[data-site=west] .site-about").toMatch(/^cut off, \d+ events$/);
      await shown(page, "#sites tr:has(.badge.bad)").toMatch(/west.*not known.*cut off, heard.*has not dialled again/);
      await picture(page, "cut");

      await proxy.heal();
      await there(page, "#mesh-jobs tbody tr").toBe(8);
      await there(page, ".edge.live").toBe(2);
      await picture(page, "healed");
      expect(errors).toEqual([]);
      expect([...hosts]).toEqual([hub.url]);
      // The feed of events went on from where it was, all the time.
      expect(beginnings).toBeLessThanOrEqual(1);
    },
    SPREAD_MS * 3,
  );

  it(
    "finds jobs and events by site, type and words, as its URL says",
    async () => {
      await using watched = await opened(browser, east.url, "?view=sites&site=west&type=build%3Asubmitted");
      const { page } = watched;
      await there(page, "#mesh-jobs tbody tr").toBe(3);
      await there(page, "#mesh-events tbody tr").toBe(3);
      expect(await text(page, "#mesh-events tbody")).not.toMatch(/\b(hub|east)\b/);
      expect(await page.locator("select[name=site]").first().inputValue()).toBe("west");
      // East dialled the hub, and measures that; of the link between hub and west it knows nothing and shows nothing.
      await there(page, ".edge").toBe(1);
      await shown(page, ".edge text").toMatch(/^\d+ ms, in step$/);
      await shown(page, "[data-site=west] .site-about").toMatch(/^no link, \d+ events$/);
      await page.locator("select[name=type]").selectOption("");
      await expect.poll(() => page.url(), POLL).not.toContain("type=");
      await page.fill("input[name=entity]", "worker-of-nobody");
      await shown(page, "section[aria-labelledby=mesh-events-title]").toContain("No event fits.");
      expect(watched.errors).toEqual([]);
    },
    SPREAD_MS,
  );

  it(
    "verifies an event of another site in the browser; what was changed on the way is refuted",
    async () => {
      await using watched = await opened(browser, east.url, "?view=sites&site=west&type=build%3Asubmitted");
      const { page } = watched;
      await page
        .getByRole("button", { name: /^Verify event/ })
        .first()
        .click({ timeout: SPREAD_MS });
      await shown(page, "#event-proof .verified").toMatch(
        /^Verified in this browser: its bytes have this hash, .* signed by west\/n1.* Ed25519 signature was verified in this browser too/,
      );
      await picture(page, "verified");

      await page.route("**/v1/mesh/pages?*", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: (await response.text()).replaceAll("echo", "evil") });
      });
      await page.getByRole("button", { name: "Close" }).click();
      await page
        .getByRole("button", { name: /^Verify event/ })
        .first()
        .click();
      await shown(page, "#event-proof .failed").toContain("This is not what the site has signed");
      await page.unroute("**/v1/mesh/pages?*");

      await page.route("**/v1/events/proof?*", async (route) => {
        const body = (await (await route.fetch()).json()) as { path: string[] };
        await route.fulfill({
          json: { ...body, path: body.path.map((hash) => hash.replace(/^./, (digit) => (digit === "0" ? "1" : "0"))) },
        });
      });
      await page.getByRole("button", { name: "Close" }).click();
      await page
        .getByRole("button", { name: /^Verify event/ })
        .first()
        .click();
      await shown(page, "#event-proof .failed").toContain("does not lead from this event to the signed root");
    },
    SPREAD_MS,
  );

  it(
    "has the events of the whole window where they are not too many, and says where what it has begins",
    async () => {
      await using watched = await openPage(browser);
      const { page, errors } = watched;
      // Ten in a second, all of one site.
      const [total, beganMs] = [2_000, Date.now() - 200_000];
      const event = (arrival: number) => ({
        arrival,
        site: "east",
        line: "east.1",
        line_sequence: arrival,
        timestamp: beganMs + arrival * 100,
        event_type: "build:submitted",
        entity_id: `job-${arrival}`,
        entity_type: "build",
        payload: {},
        event_hash: "",
      });
      await page.route("**/v1/mesh/events?*", async (route) => {
        const query = new URL(route.request().url()).searchParams;
        const [limit, after] = [Number(query.get("limit")), query.get("after_arrival")];
        const from = after === null ? total - limit : Number(after);
        const events = Array.from({ length: Math.min(limit, total - from) }, (_, at) => event(from + at + 1));
        const next = from + events.length < total ? from + events.length : null;
        await route.fulfill({ json: { events, next, dropped_through: 0, through: total } });
      });
      await page.goto(`${east.url}/?view=sites#key=${encodeURIComponent(OPERATOR_KEY)}`);
      // Those of the last minute, less what has passed meanwhile.
      await expect.poll(() => page.locator("[data-site=east] .dot").count(), POLL).toBeGreaterThan(400);
      await there(page, "[data-site=east] .not-known").toBe(0);
      await shown(page, "[data-site=west] .lane-hint").toMatch(
        /^its last event, .* ago, is not among those that are loaded$/,
      );
      await page.getByRole("button", { name: "5 min" }).click();
      await shown(page, "[data-site=east] .not-known").toBe("earlier events are not loaded");
      expect(await page.locator("[data-site=east] .dot").count()).toBe(800);
      await picture(page, "many");
      expect(errors).toEqual([]);
    },
    SPREAD_MS,
  );

  it(
    "of a standalone site says in one sentence how to switch it on",
    async () => {
      const alone = await startTenureCluster({ nodes: 1 });
      try {
        await using watched = await opened(browser, alone.nodes[0]!.url);
        await shown(watched.page, ".empty").toContain('mode = "distributed"');
        expect(await watched.page.locator("#own-site").count()).toBe(0);
        const forget = { name: "Forget key" } as const;
        expect(await watched.page.getByRole("button", forget).count()).toBe(1);
        await using keyless = await openPage(browser);
        await keyless.page.goto(`${alone.nodes[0]!.url}/?view=sites`);
        await shown(keyless.page, ".door h2").toBe("A key is needed");
        expect(await keyless.page.getByRole("button", forget).count()).toBe(0);
      } finally {
        await alone.end();
      }
    },
    SITES_START_MS,
  );
});
