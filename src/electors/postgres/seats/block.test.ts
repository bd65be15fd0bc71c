// A session of its own on a clock that is moved by hand: the moments that real servers show too seldom.

import { describe, expect, it } from "vitest";
import { seededRandom } from "../../../core/kit/random.ts";
import type { LossReason } from "../../../ports/backends/backend.ts";
import { HandClock, settled } from "../../../loops/test-clock.ts";
import { Admission } from "../../../postgres/admission.ts";
import { BlockHolder } from "./block.ts";
import type { Scoped } from "./holder.ts";
import { settingsOf } from "../options.ts";
import { statements } from "../../../postgres/schema/schema.ts";
import { TestServer } from "../../../postgres/test-server.ts";

const WAIT = "tenure_wait";
const BUMP = "tenure_bump";
const settings = settingsOf({ url: "postgres://h/d" });

function holder() {
  const server = new TestServer();
  server.says[WAIT] = () => [{ granted: true }];
  server.says[BUMP] = () => [{ epoch: "7" }];
  const clock = new HandClock();
  const lost: [number, LossReason][] = [];
  const silent = (): void => undefined;
  const scoped: Scoped = {
    claim: {
      scope: "s",
      identity: "me",
      metadata: {},
      clock,
      random: seededRandom("block"),
      logger: { info: silent, warn: silent, error: silent },
      lost: (epoch, reason) => void lost.push([epoch, reason]),
    },
    key: "5",
    where: server.where,
    settings,
    sql: statements(settings.schema),
  };
  return { server, clock, lost, holder: new BlockHolder(scoped, server, new Admission(server, settings)) };
}

describe("a seat with a session of its own", () => {
  it("trap 49a: asks again at once when lock_timeout ended its wait", async () => {
    const { server, holder: seat } = holder();
    let refusals = 3;
    server.says[WAIT] = () => [{ granted: refusals-- <= 0 }];
    expect((await seat.acquire()).epoch).toBe(7);
    expect(server.count(WAIT)).toBe(4);
  });

  it("does not take a grant for a hold if the session ended in the same packet", async () => {
    const { server, lost, holder: seat } = holder();
    server.says[BUMP] = () => {
      server.sessions[0]?.break();
      return [{ epoch: "7" }];
    };
    await expect(seat.acquire()).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    expect(lost).toEqual([]);
  });

  it("rejects what was abandoned, although the epoch was given out", async () => {
    const { server, holder: seat } = holder();
    const bump = Promise.withResolvers<[{ epoch: string }]>();
    server.says[BUMP] = () => bump.promise;
    const acquiring = seat.acquire();
    const rejected = expect(acquiring).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    while (server.count(BUMP) === 0) await settled();
    seat.abandon();
    bump.resolve([{ epoch: "7" }]);
    await rejected;
  });

  it("says again that it holds nothing when it is asked to beat after its session ended", async () => {
    const { server, lost, holder: seat } = holder();
    const { epoch } = await seat.acquire();
    server.sessions[0]?.break();
    await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(lost).toEqual([
      [7, "session-ended"],
      [7, "session-ended"],
    ]);
    await seat.release(epoch);
  });

  it("leaves an unanswered beat to the elector for longer than the server timeout", async () => {
    const { server, clock, lost, holder: seat } = holder();
    const { epoch } = await seat.acquire();
    server.says["tenure_beat"] = () => Promise.withResolvers<[]>().promise;
    const beat = seat.beat(epoch).catch(() => "rejected");
    await clock.advance(settings.timing.serverTimeoutMs + 1_000);
    expect(lost).toEqual([]);
    seat.abandon();
    void beat;
    expect(lost).toEqual([]);
  });

  it("an epoch that is none is refused", async () => {
    const { server, holder: seat } = holder();
    server.says[BUMP] = () => [{ epoch: "9007199254740992" }];
    await expect(seat.acquire()).rejects.toThrow("as an epoch");
  });
});
