import { expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { LogFields } from "../../ports/logger.ts";
import { OutageLog } from "./outage-log.ts";

const DOWN = new TenureError("BACKEND_UNAVAILABLE", "connection refused");

function stage() {
  const clock = {
    nowMs: 1_000,
    monotonicMs: () => clock.nowMs,
    wallMs: () => 0,
    setTimer: () => ({ cancel: () => undefined }),
  };
  const lines: (readonly [string, LogFields])[] = [];
  const note = (fields: LogFields, message: string): void => void lines.push([message, fields]);
  const logger = { info: note, warn: note, error: note };
  const log = new OutageLog({ clock, logger, fields: { log: "jobs" }, texts: { out: "fails", well: "works again" } });
  return { clock, lines, log, said: () => lines.map(([message]) => message) };
}

it("an outage of five minutes is six lines and one more when it is over, however often it fails", () => {
  const { clock, log, said, lines } = stage();
  log.works();
  for (let second = 0; second <= 300; second++) {
    log.failed(DOWN);
    clock.nowMs += 1_000;
  }
  expect(said()).toEqual(["fails", "fails", "fails", "fails", "fails", "fails"]);
  expect(lines.at(-1)?.[1]).toMatchObject({
    log: "jobs",
    error: "connection refused",
    failures: 301,
    sinceMs: 300_000,
  });
  log.works();
  log.works();
  expect(said().slice(6)).toEqual(["works again"]);
  expect(lines.at(-1)?.[1]).toMatchObject({ failures: 301, lastedMs: 301_000 });
});

it("another reason is news, and so is the next outage", () => {
  const { log, said } = stage();
  log.failed(DOWN);
  log.failed(new TenureError("CONFIG_INVALID", "no such database"));
  log.works();
  log.failed(DOWN);
  expect(said()).toEqual(["fails", "fails", "works again", "fails"]);
});
