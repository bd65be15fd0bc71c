// The dashboard in a real Chromium, in front of three real nodes: what it shows is so, what is done with it happens, and when
// the node that it came from is killed it goes on at the others.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAgent } from "../../src/entry/agent.ts";
import { type Client, createClient } from "../../src/entry/client.ts";
import { CALM_ELECTION, OPERATOR_KEY, startTenureCluster, type TenureCluster, VIEWER_KEY } from "../servers/index.ts";
import { browserPath, buildWeb, openPage, startBrowser, verified, type WatchedPage } from "./test-browser.ts";

const LIMIT_MS = 120_000;
const MANY_JOBS = 10_000;
const JOBS_PER_REQUEST = 1_000;
const LOAD_MS = 4_000;

let cluster: TenureCluster;
let client: Client;
let browser: Browser;
let agent: AsyncDisposable | undefined;
/** What is looked at by people; the test prints where they are. */
const pictures = mkdtempSync(join(tmpdir(), "tenure-pictures-"));

const noBrowser = browserPath() === undefined;
if (noBrowser) console.log("there is no chromium on PATH: the dashboard is not tested in a browser");

const text = (page: Page, selector: string): Promise<string> => page.locator(selector).innerText();
const shown = (page: Page, selector: string) => expect.poll(() => text(page, selector));

async function opened(query = "", key: string | null = OPERATOR_KEY, node?: string): Promise<WatchedPage> {
  const watched = await openPage(browser);
  const { url } = cluster.node(node ?? (await cluster.leader()));
  await watched.page.goto(`${url}/${query}${key === null ? "" : `#key=${encodeURIComponent(key)}`}`);
  return watched;
}

/** Nothing went wrong, and nobody was asked but the cluster. */
function expectClean({ errors, hosts }: WatchedPage): void {
  expect(errors).toEqual([]);
  expect([...hosts].filter((host) => !cluster.urls.includes(host))).toEqual([]);
}

describe.skipIf(noBrowser)("the dashboard", { timeout: LIMIT_MS }, () => {
  beforeAll(async () => {
    buildWeb();
    [cluster, browser] = await Promise.all([startTenureCluster({ election: CALM_ELECTION }), startBrowser()]);
    client = createClient({ urls: cluster.urls, key: OPERATOR_KEY, timeoutMs: 30_000 });
    const handlers = {
      talk: async (_job: unknown, { signal, log }: { signal: AbortSignal; log: (line: string) => void }) => {
        log("\u001b[32mhello from the job\u001b[0m\n");
        await new Promise<void>((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
        });
      },
      quick: async () => ({ done: true }),
    };
    const made = createAgent({ urls: cluster.urls, key: OPERATOR_KEY, name: "worker-of-the-test", handlers });
    agent = made;
    await made.start();
  }, LIMIT_MS);

  afterAll(async () => {
    await browser?.close();
    await agent?.[Symbol.asyncDispose]();
    await cluster?.end();
  });

  it("asks for a key where one is needed, says when it is wrong, and keeps it out of the address", async () => {
    await using watched = await opened("", null);
    const { page, errors } = watched;
    await shown(page, ".door h2").toBe("A key is needed");
    await page.fill("#key", "wrong");
    await page.keyboard.press("Enter");
    await shown(page, ".door h2").toBe("This key is not taken");
    await page.fill("#key", VIEWER_KEY);
    await page.keyboard.press("Enter");
    await shown(page, "#leader").toBe(await cluster.leader());
    await page.reload();
    await shown(page, "#leader").toBe(await cluster.leader());
    // What a browser says of an answer with 401 is no mistake of the page.
    expect(errors.filter((error) => !error.includes("401"))).toEqual([]);

    await using withKey = await opened("?view=scopes");
    await shown(withKey.page, "#scopes-title").toBe("Scopes");
    expect(withKey.page.url()).not.toContain("key");
    expectClean(withKey);
  });

  it("shows who leads in which epoch, how many vote, and where it reads from", async () => {
    // A founder's own election may be over before it keeps a history of them.
    await client.transfer();
    const leader = await cluster.leader();
    const follower = cluster.nodes.map(({ id }) => id).find((id) => id !== leader)!;
    await using watched = await opened("", VIEWER_KEY, follower);
    const { page } = watched;
    await shown(page, "#leader").toBe(leader);
    await shown(page, "#epoch").toBe(String((await cluster.node(leader).view())?.term));
    await shown(page, "#quorum").toBe("3 of 3");
    await shown(page, "#reads").toMatch(new RegExp(`^${follower}, (\\d+ ms|[\\d.]+ s) behind$`));
    await page.click(".term.present");
    await shown(page, "#term").toMatch(new RegExp(`${leader}[^]*transfer[^]*Votes[^]*${leader} yes`));
    expectClean(watched);
  });

  it("finds jobs by what its URL says, also after a reload, and shows why one waits", async () => {
    const [waiting = "", talking = ""] = await client.submitMany([
      { kind: "nobody-takes-it", queue: "far-away", payload: { colour: "vermilion" } },
      { kind: "talk" },
    ]);
    await using watched = await opened("?view=jobs");
    const { page } = watched;
    await page.fill("input[name=kind]", "nobody-takes-it");
    await page.getByLabel("pending", { exact: true }).check();
    await shown(page, "#jobs tbody").toContain(waiting);
    await shown(page, "#jobs tbody").not.toContain(talking);
    await expect.poll(() => page.url()).toContain("kind=nobody-takes-it");
    await page.reload();
    await shown(page, "#jobs tbody").toContain(waiting);
    expect(await page.locator("input[name=kind]").inputValue()).toBe("nobody-takes-it");
    expect(await page.locator("#jobs tbody tr").count()).toBe(1);
    await page.click(`text=${waiting}`);
    await shown(page, "#why").toContain("no agent takes it");
    await page.goBack();
    await shown(page, "#jobs tbody").toContain(waiting);

    await page.goto(`${new URL(page.url()).origin}/?view=jobs&job=${talking}`);
    await shown(page, ".log").toBe("hello from the job\n");
    await shown(page, "#attempts tbody").toContain("worker-of-the-test");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel the job" }).click();
    await expect.poll(async () => (await client.job(talking)).state).toBe("cancelled");
    await shown(page, "article .badge").toBe("cancelled");
    expectClean(watched);
  });

  it("an attempt that was lost shows its epoch, and that its results are refused", async () => {
    // An agent that takes the job and is never heard from again.
    const id = await client.submit({ kind: "lost-one", lossesMax: 5, attemptsMax: 1 });
    const leases = {
      agent: { name: "goner", session: "s", kinds: ["lost-one"], platform: "any", capacity: 1 },
      max: 1,
      wait_ms: 5_000,
      ttl_ms: 1_000,
    };
    const { status } = await cluster
      .node(await cluster.leader())
      .call("/v1/leases", { key: OPERATOR_KEY, body: leases });
    expect(status).toBe(200);
    await using watched = await opened(`?view=jobs&job=${id}`);
    await shown(watched.page, "#attempts tbody").toMatch(
      /^1\t1\t\d+\tgoner[^]*a result of epoch 1 would be refused: STALE_EPOCH/,
    );
    expectClean(watched);
  });

  it("steers what an operator steers: queues, agents, scopes; a viewer is told why not", async () => {
    await client.scopes.acquire({ scope: "of/the test", session: "s", identity: "me", ttlMs: 30_000, waitMs: 0 });
    await client.submit({ kind: "nobody-takes-it", queue: "steered" });
    await using watched = await opened("?view=work");
    const { page } = watched;
    await page.getByRole("button", { name: "Pause steered" }).click();
    // It asks first, and whoever presses Enter once too often has changed nothing.
    await expect.poll(() => page.evaluate<string>("document.activeElement.textContent")).toBe("Leave it");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator("dialog[open]").count()).toBe(0);
    expect((await client.queues()).find(({ queue }) => queue === "steered")?.paused).toBe(false);
    await page.getByRole("button", { name: "Pause steered" }).click();
    await page.getByRole("button", { name: "Pause the queue" }).click();
    await expect.poll(async () => (await client.queues()).find(({ queue }) => queue === "steered")?.paused).toBe(true);
    await page.getByRole("button", { name: "Resume steered" }).click();
    await expect.poll(async () => (await client.queues()).find(({ queue }) => queue === "steered")?.paused).toBe(false);
    const stateOf = async () => (await client.agents()).find(({ name }) => name === "worker-of-the-test")?.state;
    await page.getByRole("button", { name: "Drain worker-of-the-test" }).click();
    await page.getByRole("button", { name: "Drain the agent" }).click();
    await expect.poll(stateOf).toBe("draining");
    await page.getByRole("button", { name: "Give jobs again to worker-of-the-test" }).click();
    await expect.poll(stateOf).toBe("online");

    await page.getByRole("link", { name: "Scopes" }).click();
    await page.getByRole("link", { name: "of/the test" }).click();
    await shown(page, "#history tbody").toContain("acquired");
    await page.getByRole("button", { name: "Take of/the test away" }).click();
    await page.getByRole("button", { name: "Take it away" }).click();
    await expect.poll(async () => (await client.scopes.get("of/the test")).holder).toBeNull();
    await shown(page, "#scopes tbody").toContain("nobody");
    expectClean(watched);

    await using viewing = await opened("?view=work", VIEWER_KEY);
    await viewing.page.getByRole("button", { name: "Pause steered" }).click();
    await viewing.page.getByRole("button", { name: "Pause the queue" }).click();
    await shown(viewing.page, ".notice").toContain("has the role viewer, and this needs operator");
  });

  it("shows events as they come, and that every node's history is whole and the same", async () => {
    await using watched = await opened("?view=scopes");
    const { page } = watched;
    await page.getByRole("button", { name: /^Events/ }).click();
    const id = await client.submit({ kind: "quick" });
    await shown(page, "#events tbody").toContain(id);
    await expect.poll(() => verified(page)).toMatch(/^(n\d: whole through [\d,]+\s*){3}the same$/);
    expectClean(watched);
  });

  it("every control is reached with the Tab key, the way past the frame first", async () => {
    await expect.poll(() => client.values.put("of/the test", { at: 1 }).catch(() => null)).not.toBeNull();
    const scope = "?view=scopes&scope=of%2Fthe%20test";
    const value = "?view=values&value=of%2Fthe%20test";
    for (const query of ["", "?view=jobs", "?view=work", scope, value]) {
      await using watched = await opened(query);
      const { page } = watched;
      await page.waitForSelector("main h2");
      await page.evaluate("document.activeElement.blur()");
      const controls = `[...document.querySelectorAll("a[href], button, input, [tabindex='0']")]
        .filter((one) => one.checkVisibility() && !one.disabled)`;
      await expect.poll(() => page.evaluate<number>(`${controls}.length`)).toBeGreaterThan(6);
      const wanted = await page.evaluate<number>(`${controls}.length`);
      await page.evaluate("window.reached = new Set()");
      for (let at = 0; at < wanted * 2 + 20; at++) {
        await page.keyboard.press("Tab");
        await page.evaluate("reached.add(document.activeElement)");
        if (at === 0) expect(await page.evaluate<string>("document.activeElement.textContent")).toBe("To the content");
      }
      const missed = await page.evaluate<string[]>(
        `${controls}.filter((one) => !reached.has(one)).map((one) => one.outerHTML)`,
      );
      expect(missed, query).toEqual([]);
      const nameless = await page.evaluate<
        string[]
      >(`${controls}.filter((one) => !(one.textContent.trim() || one.ariaLabel
        || one.labels?.length)).map((one) => one.outerHTML)`);
      expect(nameless, query).toEqual([]);
    }
  });

  it("lists ten thousand jobs page by page, and asks little while hundreds of jobs a second go by", async () => {
    const batch = Array.from({ length: JOBS_PER_REQUEST }, () => ({ kind: "of-many", queue: "many" }));
    await client.pauseQueue("many");
    let newest: string | undefined;
    for (let at = 0; at < MANY_JOBS; at += JOBS_PER_REQUEST) newest = (await client.submitMany(batch)).at(-1);
    await using watched = await opened("?view=jobs&queue=many");
    const { page, paths } = watched;
    await shown(page, "#jobs tbody tr:first-child th").toBe(newest);
    expect(await page.locator("#jobs tbody tr").count()).toBe(50);
    await page.getByRole("link", { name: "Older" }).click();
    await shown(page, "#jobs tbody tr:first-child th").not.toBe(newest);
    expect(await page.locator("#jobs tbody tr").count()).toBe(50);
    await page.getByRole("link", { name: "Newest" }).click();
    await shown(page, "#jobs tbody tr:first-child th").toBe(newest);

    const before = paths.filter((path) => path === "/v1/jobs").length;
    const startedMs = performance.now();
    let submitted = 0;
    while (performance.now() - startedMs < LOAD_MS) {
      await client.submitMany(batch.slice(0, 50));
      submitted += 50;
    }
    const tookMs = performance.now() - startedMs;
    const asked = paths.filter((path) => path === "/v1/jobs").length - before;
    console.log(`${submitted} jobs in ${Math.round(tookMs)} ms; the list was asked for ${asked} times`);
    expect(submitted).toBeGreaterThan((500 * tookMs) / 1_000);
    expect(asked).toBeLessThanOrEqual(2 + tookMs / 600);
    await shown(page, "#jobs tbody tr:first-child th").not.toBe(newest);
    expectClean(watched);
  });

  it("fits its window, light and dark, wide and narrow", async () => {
    await client.submit({ kind: `a-kind-with-a-${"very-".repeat(12)}long-name`, queue: "q".repeat(100) });
    for (const colorScheme of ["light", "dark"] as const) {
      for (const width of [1280, 420]) {
        await using watched = await openPage(browser, { colorScheme, viewport: { width, height: 900 } });
        const { page } = watched;
        const { url } = cluster.node("n1");
        await page.goto(`${url}/#key=${OPERATOR_KEY}`);
        for (const view of ["cluster", "jobs", "work", "scopes", "values"]) {
          await page.goto(`${url}/?view=${view}`);
          await page.waitForSelector("main table");
          await page.screenshot({ path: join(pictures, `${view}-${colorScheme}-${width}.png`) });
          const over = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
          expect(over, `${view} is wider than a window of ${width}`).toBeLessThanOrEqual(0);
        }
        expectClean(watched);
      }
    }
    console.log(`pictures: ${pictures}`);
  });

  it("a node that is frozen is left for another, and read from again when it goes on", async () => {
    const leader = await cluster.leader();
    const follower = cluster.nodes.map(({ id }) => id).find((id) => id !== leader)!;
    await using watched = await opened("?view=jobs&kind=quick", OPERATOR_KEY, follower);
    const { page } = watched;
    await shown(page, "#reads").toMatch(new RegExp(`^${follower}, `));
    cluster.freeze(follower);
    try {
      await shown(page, "#reads").toMatch(new RegExp(`^(?!${follower}|nobody)n\\d, `));
      const id = await client.submit({ kind: "quick" });
      await shown(page, "#jobs tbody").toContain(id);
      await page.getByRole("button", { name: /^Events/ }).click();
      await shown(page, "#events tbody").toContain(id);
    } finally {
      cluster.thaw(follower);
    }
    await shown(page, "#reads").toMatch(new RegExp(`^${follower}, `));
    expectClean(watched);
  });

  it("goes on at another node when the one that it came from, the leader, is killed: the gap, then the new epoch", async () => {
    const leader = await cluster.leader();
    const epoch = Number((await cluster.node(leader).view())?.term);
    await using watched = await opened("", OPERATOR_KEY, leader);
    const { page } = watched;
    await shown(page, "#leader").toBe(leader);
    await shown(page, "#quorum").toBe("3 of 3");
    await page.waitForSelector(".numbers");
    await cluster.kill(leader);
    await shown(page, "#reads").toMatch(new RegExp(`^(?!${leader}|nobody)n\\d, `));
    await expect.poll(async () => Number(await text(page, "#epoch"))).toBeGreaterThan(epoch);
    await shown(page, "#leader").toMatch(new RegExp(`^(?!${leader})n\\d$`));
    await shown(page, "#gap").toMatch(/^(\d+ ms|[\d.]+ s)$/);
    // Its length can be read with the keyboard alone, also where there is no room for it in the picture.
    await page.locator(".term.present").focus();
    await page.keyboard.press("Enter");
    await shown(page, "#term").toMatch(/Nobody led before\s+(\d+ ms|[\d.]+ s)\s/);
    await shown(page, "#quorum").toBe("2 of 3");
    expect(await page.locator(".gap").count()).toBeGreaterThan(0);
    expect(await text(page, ".numbers")).toContain("Pending");

    // Without a majority nobody leads: red, and counting.
    const second = await cluster.waitForLeader(leader);
    await cluster.kill(second);
    const since = async () =>
      Number(/^nobody for ([\d,]+) ms$/.exec(await text(page, "#leader"))?.[1]?.replaceAll(",", ""));
    await expect.poll(since).toBeGreaterThan(0);
    expect(await page.title()).toBe("nobody leads – Cluster – Tenure");
    const then = await since();
    await expect.poll(since).toBeGreaterThan(then);
    expect(await page.locator(".bar.gone").count()).toBe(1);
    await page.screenshot({ path: join(pictures, "nobody.png") });
    expectClean(watched);

    const before = Number(await text(page, "#epoch"));
    cluster.start(leader);
    cluster.start(second);
    await cluster.steady();
    await shown(page, "#leader").toBe(await cluster.leader());
    await expect.poll(async () => Number(await text(page, "#epoch"))).toBeGreaterThan(before);
    expect(await page.locator(".bar.gone").count()).toBe(0);
    await shown(page, "#quorum").toBe("3 of 3");
    await page.screenshot({ path: join(pictures, "after.png") });
    // It is back: what is submitted now is seen, over the stream that has moved.
    const seenId = await client.submit({ kind: "quick" });
    await page.getByRole("button", { name: /^Events/ }).click();
    await shown(page, "#events tbody").toContain(seenId);
    // A node that has just started does not know the others' URLs yet, and refuses their pages until it does; nor does it know the
    // event from which the page goes on, and has nobody to ask while nobody leads (503, and the page goes to another node).
    const others = watched.errors.filter(
      (error) => !/blocked by CORS policy|net::ERR_FAILED|status of 503/.test(error),
    );
    expectClean({ ...watched, errors: others });
  });
});
