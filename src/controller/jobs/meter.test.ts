import { describe, expect, it } from "vitest";
import type { StoredEvent } from "../../core/events/index.ts";
import { JobsMeter } from "./meter.ts";

const EPOCH = 7;

function meterAt() {
  const now = { epoch: EPOCH as number | null, wallMs: 1_000 };
  const meter = new JobsMeter({ leadership: { epoch: () => now.epoch }, clock: { wallMs: () => now.wallMs } });
  const apply = (eventType: string, entityId: string, payload: object = {}, leaderEpoch = EPOCH): void => {
    const { wallMs: timestamp } = now;
    meter.applied({ eventType, entityId, payload, leaderEpoch, timestamp } as unknown as StoredEvent);
  };
  const submit = (id: string, notBeforeMs: number | null = null): void =>
    apply("build:submitted", id, { spec: { notBeforeMs } });
  return { now, meter, apply, submit };
}

describe("the meter of jobs", () => {
  it("counts what this leader committed, by kind", () => {
    const { meter, apply, submit } = meterAt();
    for (const id of ["a", "b", "c"]) submit(id);
    for (const id of ["a", "b", "c"]) apply("build:assigned", id, { attempt: 1 });
    apply("build:retried", "b", { cause: "lost" });
    apply("build:assigned", "b", { attempt: 2 });
    apply("build:completed", "a");
    apply("build:failed", "b", { cause: "failed" });
    apply("build:cancelled", "c", { cause: "cancelled" });
    apply("build:retried", "c", { cause: "asked" });
    apply("worker:registered", "w");
    expect(meter.counts()).toMatchObject({
      submitted: 3,
      leased: 4,
      finished: { completed: 1, failed: 1, cancelled: 1 },
      retried: { failed: 0, "timed-out": 0, lost: 1, "handed-back": 0, undelivered: 0, asked: 1 },
    });
  });

  it("counts nothing that another leader wrote, so that what is read again at a start counts nowhere", () => {
    const { now, meter, apply, submit } = meterAt();
    apply("build:submitted", "old", { spec: { notBeforeMs: null } }, EPOCH - 1);
    now.epoch = null;
    submit("not leading");
    expect(meter.counts()).toMatchObject({ submitted: 0, commitMs: { count: 0 } });
  });

  it("counts on after a gate that was closed for a moment, also at an epoch's first event", () => {
    const { now, meter, submit } = meterAt();
    now.epoch = null;
    submit("meanwhile");
    now.epoch = EPOCH;
    submit("again");
    expect(meter.counts().submitted).toBe(1);
    now.epoch = null;
    submit("ours, though the gate is closed again");
    expect(meter.counts().submitted).toBe(2);
  });

  it("times a submission to its commit and to its first assignment; what may not run yet waits from then on", () => {
    const { now, meter, apply } = meterAt();
    const submitAt = (id: string, timestamp: number, notBeforeMs: number | null): void => {
      const payload = { spec: { notBeforeMs } };
      meter.applied({
        eventType: "build:submitted",
        entityId: id,
        payload,
        leaderEpoch: EPOCH,
        timestamp,
      } as unknown as StoredEvent);
    };
    submitAt("now", 996, null);
    submitAt("later", 1_000, 5_000);
    // A little ahead of the clock, as sealed times may be.
    submitAt("ahead", 1_000.004, null);
    expect(meter.counts().commitMs).toMatchObject({ count: 3, sum: 4 });
    now.wallMs = 1_006;
    apply("build:assigned", "now");
    now.wallMs = 5_003;
    apply("build:assigned", "later");
    apply("build:assigned", "later");
    expect(meter.counts().assignedMs).toMatchObject({ count: 2, sum: 10 + 3 });
  });

  it("times how late schedules fire", () => {
    const { meter, apply } = meterAt();
    apply("schedule:fired", "nightly", { atMs: 960, jobId: "a" });
    expect(meter.counts().scheduleLagMs).toMatchObject({ count: 1, sum: 40 });
  });

  it("holds a bounded number of jobs that wait, and forgets those that end unassigned", () => {
    const { meter, apply, submit } = meterAt();
    for (let i = 0; i < 10_001; i++) submit(`j${i}`);
    apply("build:assigned", "j10000");
    expect(meter.counts().assignedMs.count).toBe(0);
    apply("build:cancelled", "j0");
    submit("fits again");
    apply("build:assigned", "fits again");
    expect(meter.counts().assignedMs.count).toBe(1);
  });
});
