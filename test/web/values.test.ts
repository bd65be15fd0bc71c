// The page of values in a real Chromium, in front of three real nodes: what is listed is so, contents are shown whole and as text, changes appear by
// themselves, and what is deleted is what was read.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VALUE_BYTES_MAX } from "../../src/core/kit/limits.ts";
import { type Client, createClient } from "../../src/entry/client.ts";
import { CALM_ELECTION, OPERATOR_KEY, startTenureCluster, type TenureCluster, VIEWER_KEY } from "../servers/index.ts";
import { browserPath, buildWeb, openPage, startBrowser, type WatchedPage } from "./test-browser.ts";

const LIMIT_MS = 120_000;
const noBrowser = browserPath() === undefined;
if (noBrowser) console.log("there is no chromium on PATH: the page of values is not tested in a browser");

/** What is looked at by people; nothing is written where it is not set. */
const pictures = process.env["TENURE_TEST_PICTURES"];

let cluster: TenureCluster;
let client: Client;
let browser: Browser;

const text = async (page: Page, selector: string): Promise<string> =>
  (await page.locator(selector).textContent()) ?? "";
const shown = (page: Page, selector: string) => expect.poll(() => text(page, selector));
const rowsOf = (page: Page) => expect.poll(() => page.locator("#values tbody tr:not(.content) th").allTextContents());

async function picture(page: Page, name: string): Promise<void> {
  if (pictures === undefined) return;
  mkdirSync(pictures, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`) });
  }
}

async function opened(query: string, key = OPERATOR_KEY, node?: string): Promise<WatchedPage> {
  const watched = await openPage(browser);
  const { url } = cluster.node(node ?? (await cluster.leader()));
  await watched.page.goto(`${url}/?view=values${query}#key=${encodeURIComponent(key)}`);
  return watched;
}

/** Nothing went wrong, and nobody was asked but the cluster. */
function expectClean({ errors, hosts }: WatchedPage): void {
  expect(errors).toEqual([]);
  expect([...hosts].filter((host) => !cluster.urls.includes(host))).toEqual([]);
}

describe.skipIf(noBrowser)("the page of values", { timeout: LIMIT_MS }, () => {
  beforeAll(async () => {
    buildWeb();
    [cluster, browser] = await Promise.all([startTenureCluster({ election: CALM_ELECTION }), startBrowser()]);
    client = createClient({ urls: cluster.urls, key: OPERATOR_KEY, timeoutMs: 30_000 });
  }, LIMIT_MS);

  afterAll(async () => {
    await browser?.close();
    await cluster?.end();
  });

  it("says what to try where there is none; then a value appears by itself, with who wrote it", async () => {
    await using watched = await opened("");
    const { page } = watched;
    await shown(page, "main .empty").toContain(
      `tenure value put try/cursor '{"at": 1}' --url ${new URL(page.url()).origin}`,
    );
    await picture(page, "values-empty");
    await client.scopes.acquire({
      scope: "payer",
      session: "s",
      identity: "me",
      ttlMs: 60_000,
      waitMs: 0,
    });
    const { epoch } = await client.scopes.get("payer");
    // Values are written when each node has said that it can read them.
    await expect
      .poll(() => client.values.put("payer/cursor", { at: 41 }, { scope: "payer", epoch }).catch(String))
      .toMatchObject({
        version: expect.any(Number) as number,
      });
    const { version } = (await client.values.get("payer/cursor"))!;
    await shown(page, "#values tbody").toMatch(
      new RegExp(`^payer/cursor${version}9 B(now|[\\d.]+ m?s ago)payer, epoch ${epoch}Delete$`),
    );
    await page.getByRole("link", { name: "payer", exact: true }).click();
    await shown(page, "#history-title").toBe("Who led payer");
    expectClean(watched);
  });

  it("lists by how names begin, page after page, as its URL says, also after a reload", async () => {
    const names = Array.from({ length: 60 }, (_, at) => `many/${String(at).padStart(2, "0")}`);
    await Promise.all(names.map((name, at) => client.values.put(name, at)));
    await using watched = await opened("");
    const { page } = watched;
    await page.getByLabel("Name begins with").fill("many/");
    // What is typed gets there when its reader pauses, and begins with the first page.
    await expect.poll(() => page.url()).toContain("prefix=many");
    await rowsOf(page).toEqual(names.slice(0, 50));
    await page.getByRole("link", { name: "Next" }).click();
    await rowsOf(page).toEqual(names.slice(50));
    await page.reload();
    await rowsOf(page).toEqual(names.slice(50));
    expect(await page.getByRole("link", { name: "Next" }).count()).toBe(0);
    await page.getByRole("link", { name: "First" }).click();
    await rowsOf(page).toEqual(names.slice(0, 50));
    await page.getByLabel("Name begins with").fill("nothing");
    await shown(page, "main .empty").toBe("No value has a name that begins so.");
    expectClean(watched);
  });

  it("opens the content below its row: whole, as text and never as a page, and it follows what is written", async () => {
    const name = "open/<b>&\"'/ä";
    const markup = "<img src=x onerror=\"document.title='caught'\">\u202e";
    await client.values.put(name, { steps: [1, { done: true }], snake_case: markup });
    await client.values.put("open/large", "x".repeat(VALUE_BYTES_MAX - 2));
    await using watched = await opened("&prefix=open/");
    const { page } = watched;
    const link = page.getByRole("link", { name });
    expect(await link.getAttribute("aria-expanded")).toBe("false");
    await link.focus();
    await page.keyboard.press("Enter");
    const escaped = JSON.stringify(markup).replace("\u202e", String.raw`\u202e`);
    await shown(page, "#values pre").toBe(
      `{\n  "snake_case": ${escaped},\n  "steps": [\n    1,\n    {\n      "done": true\n    }\n  ]\n}`,
    );
    expect(await link.getAttribute("aria-expanded")).toBe("true");
    await client.values.put(name, { steps: [] });
    await shown(page, "#values pre").toBe('{\n  "steps": []\n}');
    // The address of an open one shows it wherever it is in the list.
    await page.goto(`${page.url()}&cursor=open/largf`);
    await shown(page, "main .card pre").toBe('{\n  "steps": []\n}');
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("link", { name: "First" }).click();
    await page.getByRole("link", { name: "open/large" }).click();
    await shown(page, "#values tr.opened").toContain("64 KiB");
    expect(await text(page, "#values pre")).toHaveLength(VALUE_BYTES_MAX);
    expect(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
    expect(await page.title()).toMatch(/ leads – Values – Tenure$/);
    expectClean(watched);
  });

  it("deletes what was read, after a question, and nothing that has changed since; a viewer is told why not", async () => {
    const leader = await cluster.leader();
    const follower = cluster.nodes.map(({ id }) => id).find((id) => id !== leader)!;
    await client.values.put("delete/me", 1);
    await client.values.put("delete/not", 1);
    await using watched = await opened("&prefix=delete/", OPERATOR_KEY, follower);
    const { page } = watched;
    await page.getByRole("button", { name: "Delete delete/me" }).click();
    await expect.poll(() => page.evaluate<string>("document.activeElement.textContent")).toBe("Leave it");
    const changed = await client.values.put("delete/me", 2);
    await page.getByRole("button", { name: "Delete the value" }).click();
    await shown(page, ".notice").toContain(`it has version ${changed.version}. Nothing was written`);
    expect((await client.values.get("delete/me"))?.version).toBe(changed.version);
    await shown(page, "#values tbody").toContain(String(changed.version));
    await page.getByRole("button", { name: "Delete delete/me" }).click();
    await page.getByRole("button", { name: "Delete the value" }).click();
    await shown(page, ".notice").toContain("delete/me was deleted.");
    await rowsOf(page).toEqual(["delete/not"]);
    expect(await client.values.get("delete/me")).toBeNull();
    const response = await fetch(`${cluster.node(leader).url}/metrics`, { headers: { "x-api-key": OPERATOR_KEY } });
    const metrics = await response.text();
    expect(metrics).toMatch(/^tenure_values_writes_total\{outcome="conflict"\} 1$/m);
    expect(metrics).toMatch(/^tenure_values [1-9]\d*$/m);
    // What a browser says of an answer with 409 is no mistake of the page.
    expectClean({ ...watched, errors: watched.errors.filter((error) => !error.includes("status of 409")) });

    await using viewing = await opened("&prefix=delete/", VIEWER_KEY);
    await viewing.page.getByRole("button", { name: "Delete delete/not" }).click();
    await viewing.page.getByRole("button", { name: "Delete the value" }).click();
    await shown(viewing.page, ".notice").toContain("has the role viewer, and this needs client");
    expect(await client.values.get("delete/not")).not.toBeNull();
  });

  it("marks a value that a transaction over islands has locked", async () => {
    await client.values.put("locked/one", 1);
    await using watched = await openPage(browser);
    const { page } = watched;
    const pending_txn = "01980000-0000-7000-8000-000000000001";
    await page.route("**/v1/values?*", async (route) => {
      const response = await route.fetch();
      const list = (await response.json()) as { values: object[] };
      await route.fulfill({ response, json: { ...list, values: list.values.map((one) => ({ ...one, pending_txn })) } });
    });
    await page.goto(`${cluster.node("n1").url}/?view=values&prefix=locked/#key=${encodeURIComponent(VIEWER_KEY)}`);
    await shown(page, "#values tbody th").toBe("locked/one locked");
    expect(await page.locator("#values th span[title]").getAttribute("title")).toContain(pending_txn);
    await picture(page, "values-locked");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    expectClean(watched);
  });

  it("says where values are on a site on Postgres", async () => {
    await using watched = await openPage(browser);
    const { page } = watched;
    await page.route("**/v1/cluster", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...((await response.json()) as object), backend: "postgres" } });
    });
    await page.goto(`${cluster.node("n1").url}/?view=values#key=${encodeURIComponent(VIEWER_KEY)}`);
    await shown(page, "main .empty").toContain("Nodes on Postgres keep no values");
    await picture(page, "values-postgres");
    // A request that is under way is asked of a page that is gone.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    expectClean(watched);
  });

  it("fits its window, light and dark, wide and narrow", async () => {
    const long = `payer/${"a-very-long-name-".repeat(10)}`;
    const held = await client.scopes.get("payer");
    const fence = { scope: "payer", epoch: held.epoch };
    await client.values.put(long, "short", fence);
    await client.values.put("payer/shards", {
      shards: { "eu-1": { cursor: 48_211, lag_ms: 12 }, "us-2": null },
      note: "ab ".repeat(60),
    });
    for (const width of [1280, 420]) {
      await using watched = await opened("&prefix=payer/&value=payer/shards");
      const { page } = watched;
      await page.setViewportSize({ width, height: 900 });
      await page.waitForSelector("#values pre");
      await picture(page, `values-${width}`);
      expect(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
      await page.getByRole("button", { name: "Delete payer/shards" }).click();
      await picture(page, `values-question-${width}`);
      await page.getByRole("button", { name: "Leave it" }).click();
      await page.goto(`${page.url()}&cursor=payer/t`);
      await page.waitForSelector(".card pre");
      await picture(page, `values-elsewhere-${width}`);
      expectClean(watched);
    }
  });
});
