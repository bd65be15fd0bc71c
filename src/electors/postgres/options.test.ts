import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { trustMs } from "../../core/trust/window.ts";
import { settingsOf } from "./options.ts";

const url = "postgres://user@host:5432/db";

function refusal(options: object): string {
  try {
    settingsOf(options);
  } catch (error) {
    if (TenureError.is(error) && error.code === "CONFIG_INVALID") return error.message;
    throw error;
  }
  throw new Error("it was not refused");
}

describe("the defaults", () => {
  it("are those of design D19", () => {
    const { timing, session } = settingsOf({ url });
    expect(timing).toMatchObject({ heartbeatMs: 1_000, serverTimeoutMs: 6_000, marginMs: 1_500 });
    expect(timing).toMatchObject({ retryMinMs: 200, retryMaxMs: 800 });
    expect(session).toEqual({ waitingIdleMs: 2_000, lockMs: 1_000, statementMs: 2_000 });
  });

  it("follow from a short server timeout, so that it can be set alone", () => {
    expect(settingsOf({ url, serverTimeoutMs: 1_200 }).timing).toMatchObject({ heartbeatMs: 200, marginMs: 300 });
  });

  it("leave room for the specification's slow heartbeats", () => {
    const { timing } = settingsOf({ url, heartbeatMs: 5_000 });
    expect(timing.serverTimeoutMs).toBe(3 * 5_000 + 1_500);
    expect(settingsOf({ url, heartbeatMs: 4_000, lateThresholdMs: 20_000 }).timing.serverTimeoutMs).toBe(21_500);
  });

  it("keep a waiter's lock_timeout below its statement_timeout, whatever the server timeout", () => {
    for (const serverTimeoutMs of [10, 100, 3_000, 6_000, 60_000]) {
      const { session } = settingsOf({ url, serverTimeoutMs });
      expect(session.lockMs).toBeLessThan(session.statementMs);
    }
  });
});

describe("lateThresholdMs", () => {
  it("ends trust where the specification wants it", () => {
    expect(trustMs(settingsOf({ url, lateThresholdMs: 2_000 }).timing)).toBe(2_000);
  });

  it("can't be shorter than a heartbeat, nor later than the margin", () => {
    expect(refusal({ url, lateThresholdMs: 1_200 })).toContain("lateThresholdMs is 1200, and must be larger than");
    expect(refusal({ url, serverTimeoutMs: 6_000, lateThresholdMs: 4_501 })).toContain("at most serverTimeoutMs");
  });
});

describe("what is refused", () => {
  it.each([
    [{ url, serverTimeoutMs: 2_700, marginMs: 1_500, heartbeatMs: 1_000 }, "serverTimeoutMs is 2700"],
    [{ url, heartbeatMs: -1 }, "heartbeatMs is -1"],
    [{ url, heartbeatMs: 0 }, "heartbeatMs is 0"],
    [{ url, marginMs: Number.NaN }, "marginMs is NaN"],
    [{ url, serverTimeoutMs: 1.5 }, "serverTimeoutMs is 1.5"],
    [{ url, retryMaxMs: "800" }, "retryMaxMs is 800"],
    [{ url, retryMinMs: 900, retryMaxMs: 800 }, "retryMinMs is 900"],
    [{ url, epochStaleThresholdMs: -5 }, "epochStaleThresholdMs is -5"],
    [{ url, migrate: "yes" }, 'migrate is "yes", and must be "auto" or "check"'],
    [{ url, wait: "long" }, 'wait is "long"'],
    [{ url, channel: "" }, "channel must have 1 to 63 bytes"],
    [{ url, channel: "x".repeat(64) }, "channel must have 1 to 63 bytes"],
    [{ url, channel: 7 }, "channel must be a text"],
    [{ url, schema: "a b" }, "schema is"],
    [{ url, lockKey: 2n ** 63n }, "lockKey is"],
    [{ url, lockKey: 1.5 }, "lockKey is"],
    [{ url, lockKey: "0x10" }, "lockKey is"],
    [{ url, heartBeatMs: 5 }, "heartBeatMs is not an option; the options are url"],
    [{}, "url is missing"],
    [{ url: 5 }, "url is not a Postgres URL"],
    [{ url: "postgres://u:p@ss/w#rd@h/db" }, "url has a # in it"],
    [{ connect: 5 }, "connect must be a function"],
  ])("%o", (options, message) => {
    expect(refusal(options)).toContain(message);
  });

  it("never shows the URL", () => {
    expect(refusal({ url: "postgres://u:hunter2@h:x/db" })).not.toContain("hunter2");
    expect(refusal({ url: "psql://u:hunter2@h/db" })).not.toContain("hunter2");
    expect(refusal({ url: "postgres://u:p@hunter2/w#rd@h/db" })).not.toContain("hunter2");
  });
});
