// Jobs have ids of a kind of their own, which show their time. What a lease is known by is a secret, and must not.

import { expect, test } from "vitest";
import { canonicalJson } from "../../events/index.ts";
import { INTEGER_MAX } from "../../kit/limits.ts";
import { JobsBook } from "../state/book.ts";
import { Desk, REQUEST, spec } from "../test-desk.ts";

test("jobs that are submitted, and those of schedules, have them; leases do not", () => {
  const desk = new Desk(new JobsBook({ canonical: (value) => canonicalJson(value, INTEGER_MAX) }));
  const submitted = desk.submit(spec(), spec());
  const schedule = { name: "nightly", cron: "0 0 * * *", timeZone: "UTC", spec: spec(), paused: false } as const;
  const put = { ...schedule, overlap: "allow", catchUp: "none" } as const;
  desk.do<"put-schedule">({ kind: "put-schedule", request: REQUEST, schedule: put });
  const fire = { kind: "fire-schedule", name: "nightly", atMs: desk.nowMs + 5 } as const;
  const fired = desk.do<"fire-schedule">(fire).jobId!;
  expect([...desk.jobIds]).toEqual([...submitted, fired]);
  const leases = desk.lease(undefined, 3).leases;
  expect(leases).toHaveLength(3);
  for (const { leaseId } of leases) expect(desk.jobIds).not.toContain(leaseId);
});
