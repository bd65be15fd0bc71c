// What a site that is taken, and hostile, can make mesh.sqlite do with events that are well-formed and signed.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { LineEvent } from "../../src/core/mesh/merge/index.ts";
import { PAGE_ROWS_PER_LOOK } from "../../src/drivers/sqlite/limits.ts";
import { readAgents } from "../../src/drivers/sqlite/mesh/reads.ts";
import type { MeshViews } from "../../src/ports/mesh/views.ts";
import { arrivals, newMeshPath, openMesh, says } from "./test-mesh.ts";

const recovered = (line: string, sequence: number, ended: string, through: number): LineEvent =>
  says(line, sequence, "controller:recovered", "evil", { line: ended, through, hash: null, frontier: "" });

async function put(views: MeshViews, events: readonly LineEvent[], from = 1): Promise<void> {
  for (let at = 0; at < events.length; at += 512) await views.put(arrivals(events.slice(at, at + 512), from + at));
}

test("lines that a site only names are not kept: each page of jobs reads all lines", async () => {
  const path = await newMeshPath();
  const views = await openMesh(path);
  await put(
    views,
    Array.from({ length: 2_000 }, (_, at) => recovered("evil.2", at + 1, `evil.x${at}`, 0)),
  );
  await views.close();
  const database = new DatabaseSync(path, { readOnly: true });
  const { count } = database.prepare("SELECT count(*) AS count FROM lines").get() as { count: number };
  database.close();
  expect(count).toBeLessThanOrEqual(64);
});

test("a line that has ended is not shown again each time that somebody says so", async () => {
  const views = await openMesh(await newMeshPath());
  const jobs = Array.from({ length: 4_096 }, (_, at) => says("evil.1", at + 1, "build:submitted", `j${at}`));
  await put(views, jobs);
  const beganMs = performance.now();
  await put(
    views,
    Array.from({ length: 128 }, (_, at) => recovered("evil.2", at + 1, "evil.1", 0)),
    jobs.length + 1,
  );
  // Once takes about a tenth of a second; 128 times took half a minute, and a page may have 512.
  expect(performance.now() - beganMs).toBeLessThan(4_000);
});

test("a line of very many jobs that ends is shown again a few at a time: the thread has little memory", async () => {
  const path = await newMeshPath();
  const views = await openMesh(path);
  await put(views, [says("evil.1", 1, "build:submitted", "j")]);
  await views.close();
  const database = new DatabaseSync(path);
  // Names as long as they may be; as if their jobs were forgotten meanwhile, because that is soon done.
  const many = "WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 400000)";
  const rows = "SELECT 'job', printf('%0256d', n), 'evil.1', n, 1, '{}' FROM numbers";
  database.exec(`INSERT INTO merged_rows (kind, id, line, sequence, is_gone, text) ${many} ${rows}`);
  database.close();
  const again = await openMesh(path);
  await put(again, [recovered("evil.2", 1, "evil.1", 0)], 2);
  expect((await again.hash()).through).toBe(2);
  expect((await again.jobs({ limit: 9 })).jobs).toMatchObject([{ id: "j", isLost: true }]);
});

test("a page of agents is bounded in bytes: a site that gives each as many labels as it may makes no page of 100 MB", async () => {
  const views = await openMesh(await newMeshPath());
  const word = "\u0001".repeat(250);
  const labels = Object.fromEntries(Array.from({ length: 32 }, (_, at) => [`${at}${word}`, word]));
  const kinds = Array.from({ length: 64 }, () => word);
  const agents = Array.from({ length: 40 }, (_, at) =>
    says("evil.1", at + 1, "worker:registered", `w${at}`, { labels, kinds }),
  );
  await put(views, agents);
  const names = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await views.agents({ limit: 500, cursor });
    expect(JSON.stringify(page).length).toBeLessThan(2 * 1024 * 1024);
    for (const { name } of page.agents) names.add(name);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  expect(names.size).toBe(agents.length);
});

test("a page of agents is looked for so long, and then goes on with the next: a site with very many holds nobody up", async () => {
  const path = await newMeshPath();
  const views = await openMesh(path);
  const many = Array.from({ length: 200 }, (_, at) => says("evil.1", at + 1, "worker:registered", `e${at}`));
  await put(views, [...many, says("b.1", 1, "worker:registered", "z")]);
  await views.close();
  const database = new DatabaseSync(path, { readOnly: true });
  const found: string[] = [];
  let [pages, cursor] = [0, undefined as string | undefined];
  do {
    const page = readAgents(database, { site: "b", limit: 9, cursor }, 0);
    found.push(...page.agents.map(({ name }) => name));
    cursor = page.next ?? undefined;
    pages++;
  } while (cursor !== undefined);
  database.close();
  expect(found).toEqual(["z"]);
  expect(pages).toBe(Math.ceil(201 / PAGE_ROWS_PER_LOOK));
});
