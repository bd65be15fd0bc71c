import { describe, expect, it } from "vitest";
import type { ScheduleView } from "../../client/index.ts";
import { ROUTES, toSnake } from "../../contract/index.ts";
import { scheduleObject, scheduleOfFile, schedulesTable, scheduleText } from "./view.ts";

const SCHEDULE: ScheduleView = {
  name: "nightly",
  cron: "0 3 * * *",
  timeZone: "UTC",
  spec: {
    kind: "backup",
    payload: { tableName: "a\u001Bb" },
    queue: "default",
    labels: { zone: "a" },
    platform: null,
    priority: 0,
    notBeforeMs: null,
    attemptsMax: 3,
    lossesMax: 10,
    backoff: { baseMs: 1_000, maxMs: 300_000 },
    timeoutMs: 600_000,
    retentionMs: 604_800_000,
    concurrency: { key: "db", limit: 1 },
  },
  overlap: "skip",
  catchUp: "last",
  paused: false,
  lastAtMs: null,
  nextAtMs: 10_800_000,
};

describe("a schedule", () => {
  it("is a row", () => {
    expect(schedulesTable([SCHEDULE, { ...SCHEDULE, name: "n", paused: true, lastAtMs: 0, nextAtMs: null }])).toBe(
      [
        "NAME     CRON       ZONE  KIND    STATE   NEXT                      LAST\n",
        "nightly  0 3 * * *  UTC   backup  on      1970-01-01T03:00:00.000Z  -\n",
        "n        0 3 * * *  UTC   backup  paused  -                         1970-01-01T00:00:00.000Z\n",
      ].join(""),
    );
  });

  it("is a page with its job", () => {
    expect(scheduleText(SCHEDULE)).toBe(
      [
        "name         nightly\n",
        "cron         0 3 * * *, in UTC\n",
        "state        on\n",
        "next         1970-01-01T03:00:00.000Z\n",
        "last         -\n",
        "overlap      skip\n",
        "catch up     last\n",
        "kind         backup\n",
        "queue        default\n",
        "priority     0\n",
        "labels       zone=a\n",
        "platform     any\n",
        "attempts     3, 1.0s to 5m00s apart\n",
        "losses       10\n",
        "timeout      10m00s\n",
        "kept for     7d0h\n",
        "concurrency  1 with db\n",
        'payload      {"tableName":"a\\u001bb"}\n',
      ].join(""),
    );
    const bare = { ...SCHEDULE.spec, timeoutMs: null, concurrency: null, notBeforeMs: 0, platform: "p" };
    const text = scheduleText({ ...SCHEDULE, spec: bare, paused: true });
    for (const line of ["state        paused", "timeout      none", "concurrency  -", "platform     p"]) {
      expect(text).toContain(`${line}\n`);
    }
    expect(text).toContain("not before   1970-01-01T00:00:00.000Z\n");
  });

  it("that was shown can be put again from a file, as the servers take it", () => {
    const file: unknown = JSON.parse(JSON.stringify(scheduleObject(SCHEDULE)));
    const { name: _name, lastAtMs: _last, nextAtMs: _next, ...request } = SCHEDULE;
    expect(scheduleOfFile("--file f", file)).toEqual(request);
    expect(ROUTES.putSchedule.body.check(toSnake(scheduleOfFile("--file f", file))).ok).toBe(true);
  });

  it("is an object in a file, and nothing else", () => {
    for (const contents of [null, [], "x", 3]) {
      expect(() => scheduleOfFile("--file f", contents)).toThrow(
        '--file f must hold an object such as {"cron": "0 3 * * *", "spec": {"kind": "backup"}}',
      );
    }
  });
});
