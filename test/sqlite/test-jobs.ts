// Jobs for the views' tests, and directories with views in them.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { Attempt, Job, JobSpec } from "../../src/core/jobs/model.ts";
import { openViews, type SqliteViews, type ViewsOptions } from "../../src/drivers/sqlite/index.ts";
import type { Logger } from "../../src/ports/logger.ts";
import { newJob } from "./test-job.ts";

export { newJob };

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

export async function newPath(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "tenure-views-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return join(directory, "views.db");
}

export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export function newLogger(): { readonly logger: Logger; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at =
    (level: LogLine["level"]): Logger["info"] =>
    (fields, message) =>
      void lines.push({ level, message, fields });
  return { logger: { info: at("info"), warn: at("warn"), error: at("error") }, lines };
}

/** Closed after the test. */
export async function openAt(path: string, options?: Partial<ViewsOptions>): Promise<SqliteViews> {
  const views = await openViews({ path, clusterId: "c1", logger: newLogger().logger, ...options });
  cleanups.push(() => views.close());
  return views;
}

export function newAttempt(attempt: number, changes?: Partial<Attempt>): Attempt {
  return {
    leaseId: `l${attempt}`,
    jobEpoch: attempt,
    leaderEpoch: 1,
    attempt,
    agent: "a1",
    session: "s1",
    ttlMs: 10_000,
    assignedAtMs: 1,
    startedAtMs: 2,
    endedAtMs: 3,
    end: "failed",
    ...changes,
  };
}

export function jobsFrom(first: number, count: number, changes?: Partial<Job>, spec?: Partial<JobSpec>): Job[] {
  return Array.from({ length: count }, (_, i) => newJob(first + i, changes, spec));
}

/** Ids of all pages, in order, and how many there were. */
export async function allPages(
  views: SqliteViews,
  query: Omit<Parameters<SqliteViews["list"]>[0], "cursor">,
  between?: () => Promise<void>,
): Promise<{ readonly ids: string[]; readonly pages: number }> {
  const ids: string[] = [];
  let pages = 0;
  let cursor: string | undefined;
  for (;;) {
    const page = await views.list({ ...query, cursor });
    pages++;
    ids.push(...page.jobs.map((job) => job.id));
    if (page.next === null) return { ids, pages };
    cursor = page.next;
    await between?.();
  }
}
