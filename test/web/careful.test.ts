// What the dashboard does not claim and does not do, in a real Chromium in front of three real nodes: under a name that no node
// gives itself, without a key, and while somebody points at a list that grows.

import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient } from "../../src/entry/client.ts";
import { CALM_ELECTION, CLIENT_KEY, OPERATOR_KEY, startTenureCluster, type TenureCluster } from "../servers/index.ts";
import { TENURE_MAIN } from "../servers/tenure-node.ts";
import { browserPath, buildWeb, openPage, startBrowser, verified } from "./test-browser.ts";

const LIMIT_MS = 120_000;

let cluster: TenureCluster;
let client: Client;
let browser: Browser;
/** What is looked at by people; the test prints where they are. */
const pictures = mkdtempSync(join(tmpdir(), "tenure-pictures-"));

const shown = (page: Page, selector: string) => expect.poll(() => page.locator(selector).innerText());
const submit = (count: number) => client.submitMany(Array.from({ length: count }, () => ({ kind: "nobody-takes-it" })));

/** What the command says; one that fails throws. */
async function tenure(key: string, words: readonly string[]): Promise<string> {
  const env = { ...process.env, TENURE_API_KEY: key };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [TENURE_MAIN, ...words], { env });
  return stdout + stderr;
}

describe.skipIf(browserPath() === undefined)("the dashboard", { timeout: LIMIT_MS }, () => {
  beforeAll(async () => {
    buildWeb();
    [cluster, browser] = await Promise.all([startTenureCluster({ election: CALM_ELECTION }), startBrowser()]);
    client = createClient({ urls: cluster.urls, key: OPERATOR_KEY, timeoutMs: 30_000 });
    console.log(`pictures: ${pictures}`);
  }, LIMIT_MS);

  afterAll(async () => {
    await browser?.close();
    await cluster?.end();
  });

  it("under a name that no node gives itself it says so, calls nobody down, and changes nothing that it can't", async () => {
    await submit(1);
    const leader = await cluster.leader();
    const follower = cluster.nodes.map(({ id }) => id).find((id) => id !== leader)!;
    for (const colorScheme of ["light", "dark"] as const) {
      await using watched = await openPage(browser, { colorScheme });
      const { page } = watched;
      const at = (id: string) => cluster.node(id).url.replace("127.0.0.1", "localhost");
      await page.goto(`${at(follower)}/#key=${OPERATOR_KEY}`);
      await shown(page, "#reach").toMatch(new RegExp(`^This page reaches ${follower} alone: .*open http`));
      await shown(page, "#quorum").toBe("3 of 3");
      await shown(page, "main table tbody").toContain("not asked");
      expect(await page.locator(".badge.bad").count()).toBe(0);
      await page.screenshot({ path: join(pictures, `alone-${colorScheme}.png`) });

      await page.getByRole("link", { name: "Agents and queues" }).click();
      const pause = page.getByRole("button", { name: "Pause default" });
      await expect.poll(() => pause.getAttribute("aria-disabled")).toBe("true");
      expect(await pause.getAttribute("title")).toContain(`Changes go to ${leader}`);
      await pause.click({ force: true });
      expect(await page.locator("dialog[open]").count()).toBe(0);

      // At the node that leads, changes go to itself.
      await page.goto(`${at(leader)}/?view=work#key=${OPERATOR_KEY}`);
      await shown(page, "#reach").toContain(`${leader} alone`);
      await page.getByRole("button", { name: "Pause default" }).click();
      await page.screenshot({ path: join(pictures, `asks-${colorScheme}.png`) });
      const release = Promise.withResolvers<void>();
      await page.route("**/v1/queues/default/pause", async (route) => {
        await release.promise;
        await route.continue();
      });
      await page.getByRole("button", { name: "Pause the queue" }).click();
      // While its request runs.
      await expect.poll(() => pause.getAttribute("aria-disabled")).toBe("true");
      release.resolve();
      await page.getByRole("button", { name: "Resume default" }).click();
      await expect.poll(() => page.getByRole("button", { name: "Pause default" }).count()).toBe(1);
    }
  });

  it("a list holds still while somebody points at it or is in it, and says how many are newer", async () => {
    await submit(3);
    await using watched = await openPage(browser);
    const { page } = watched;
    await page.goto(`${cluster.urls[0]}/?view=jobs&kind=nobody-takes-it#key=${OPERATOR_KEY}`);
    const first = page.locator("#jobs tbody tr:first-child th");
    await first.hover();
    const held = await first.innerText();
    await submit(12);
    await shown(page, ".held-line").toBe("12 newer: show them");
    expect(await first.innerText()).toBe(held);
    await page.screenshot({ path: join(pictures, "held.png") });
    await page.locator(".held-line button").click();
    await expect.poll(() => first.innerText()).not.toBe(held);

    // With the keyboard: in the list, then out of it.
    await page.mouse.move(5, 5);
    await first.locator("a").focus();
    const focused = await first.innerText();
    await submit(2);
    await shown(page, ".held-line").toBe("2 newer: show them");
    expect(await first.innerText()).toBe(focused);
    await page.locator("input[name=kind]").focus();
    await expect.poll(() => first.innerText()).not.toBe(focused);
    expect(watched.errors).toEqual([]);
  });

  it("two whole histories that are not the same are reported as such", async () => {
    await submit(1);
    const { url } = cluster.node("n2");
    await using watched = await openPage(browser);
    const { page } = watched;
    // Verified before the page has heard of n2 itself: a verdict on two of three would say that they are the same.
    await page.route(`${url}/role`, () => {});
    // As if n2 had, whole, the history of another cluster.
    for (const path of ["/api/events/verify", "/v1/events/proof?*"]) {
      await page.route(`${url}${path}`, async (route) => {
        const response = await route.fetch();
        const body = (await response.json()) as object;
        await route.fulfill({ response, json: { ...body, root: "00", from_root: "00" } });
      });
    }
    await page.goto(`${cluster.urls[0]}/#key=${OPERATOR_KEY}`);
    await expect.poll(() => verified(page)).toMatch(/^(n\d: whole through [\d,]+\s*){3}they differ: .*n2/);
    await page.screenshot({ path: join(pictures, "differ.png") });
  });

  it("the commands that it advises work", async () => {
    await using watched = await openPage(browser);
    const { page } = watched;
    const [url = ""] = cluster.urls;
    const advised = async (query: string, command: RegExp): Promise<string[]> => {
      await page.goto(`${url}/${query}#key=${OPERATOR_KEY}`);
      await shown(page, ".empty").toMatch(command);
      return command.exec(await page.locator(".empty").innerText())?.[1]?.split(" ") ?? [];
    };
    const submitted = await advised("?view=jobs&kind=none-of-these", /: tenure (job submit .*hello)$/);
    const id = await tenure(OPERATOR_KEY, submitted.toSpliced(2, 0, "--detach", "--url", url));
    expect((await client.job(id.trim())).spec.payload).toEqual({ command: ["echo", "hello"] });
    const run = await advised("?view=scopes", /: tenure (run .* -- sleep) 60/);
    expect(await tenure(CLIENT_KEY, [...run, "0"])).toContain('leading: "try" in epoch 1');
  });

  it("asks for a key also while its own node is down, and shows nothing of before once a key is forgotten", async () => {
    const leader = await cluster.leader();
    const follower = cluster.nodes.map(({ id }) => id).find((id) => id !== leader)!;
    await using watched = await openPage(browser);
    const { page } = watched;
    await page.goto(`${cluster.node(follower).url}/#key=${OPERATOR_KEY}`);
    await shown(page, "#quorum").toBe("3 of 3");
    await page.locator(".term").first().waitFor();
    await cluster.kill(follower);
    await shown(page, "#reads").toMatch(new RegExp(`^(?!${follower}|nobody)n\\d, `));
    await page.getByRole("button", { name: "Forget key" }).click();
    await shown(page, ".door h2").toBe("A key is needed");
    await shown(page, "#leader").toBe("…");
    expect(await page.evaluate<string[]>("Object.keys(sessionStorage)")).not.toContain("tenure-elections");
    await page.fill("#key", OPERATOR_KEY);
    await page.keyboard.press("Enter");
    await shown(page, "#leader").toBe(leader);
    await shown(page, "#quorum").toBe("2 of 3");
  });
});
