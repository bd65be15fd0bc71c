import { EventEmitter } from "node:events";
import type { FastifyReply, FastifyRequest } from "fastify";
import { describe, expect, it } from "vitest";
import { DELIVERY_BYTES_MAX } from "../../contract/mesh/limits.ts";
import { ManualClock, settled } from "../../loops/test-clock.ts";
import type { Arrival } from "../../ports/mesh/links.ts";
import { HELD_MS } from "../limits.ts";
import { LongPolls } from "./long-polls.ts";
import { Shares } from "./shares.ts";
import { SiteDoor } from "./site-door.ts";

const HELD_MAX = 2;
const LIMITED = { code: "RATE_LIMITED" };

function stage(arrival: Arrival) {
  const clock = new ManualClock();
  const polls = new LongPolls(clock);
  const shares = new Shares({ connections: 1, requests: 1, streams: 1, bytes: 1, held: HELD_MAX });
  const asked: unknown[] = [];
  const wasted: unknown[] = [];
  const links = {
    arrives: (...about: unknown[]) => {
      asked.push(about);
      return arrival;
    },
    wasted: (...about: unknown[]) => void wasted.push(about),
  };
  const door = new SiteDoor({ links, polls, shares, nodeId: "n1" });
  const arrive = (headers = {}, role = "controller", name = "POST /api/events/broadcast") => {
    const over = new AbortController();
    const sent: Record<string, string> = {};
    const passage = { caller: { how: "key", name: "far", role }, payer: "key far", over };
    const request = { headers, passage, routeOptions: { config: { registered: { name } } } };
    const raw = new EventEmitter();
    const reply = { raw, statusCode: 200, header: (header: string, value: string) => (sent[header] = value) };
    const end: { error?: unknown; isLetIn?: boolean } = {};
    const arrived = door.arrive(request as unknown as FastifyRequest, reply as unknown as FastifyReply);
    void arrived.then(
      () => (end.isLetIn = true),
      (error: unknown) => (end.error = error),
    );
    const answered = (status: number, isBegun = false): void => {
      Object.assign(passage, { isBegun });
      reply.statusCode = status;
      raw.emit("close");
    };
    return { end, sent, answered, gone: () => over.abort("over") };
  };
  return { clock, polls, asked, wasted, arrive };
}

it("asks with the site, the length of the body, and whether it is a delivery; nobody else is asked about", async () => {
  const { asked, arrive } = stage({ kind: "let-in" });
  const all = [
    arrive({ "content-length": "70" }),
    arrive({ "transfer-encoding": "chunked" }),
    // It is refused unread: years of waiting would be no measure for it.
    arrive({ "content-length": "9007199254740991" }),
    arrive({}, "controller", "GET /v1/mesh/heads"),
    arrive({}, "operator"),
  ];
  await settled();
  expect(all.map(({ end }) => end)).toEqual(all.map(() => ({ isLetIn: true })));
  expect(asked).toEqual([
    ["far", 70, true],
    ["far", DELIVERY_BYTES_MAX, true],
    ["far", DELIVERY_BYTES_MAX, true],
    ["far", 0, false],
  ]);
});

it("what is no request is charged to the site, and nothing else is", () => {
  const { wasted, arrive } = stage({ kind: "let-in" });
  const sent = { "content-length": "70" };
  for (const status of [200, 403, 409, 429]) arrive(sent).answered(status);
  arrive(sent).answered(400, true);
  arrive(sent, "operator").answered(400);
  expect(wasted).toEqual([]);
  arrive(sent).answered(400);
  arrive(sent).answered(413);
  expect(wasted).toEqual([
    ["far", 70],
    ["far", 70],
  ]);
});

it("what is too much is refused at once, and its connection stays", async () => {
  const { arrive } = stage({ kind: "limited", retryAfterMs: 1_200 });
  const { end, sent } = arrive();
  await settled();
  expect(end.error).toMatchObject({ ...LIMITED, retryAfterS: 2 });
  expect(sent).toEqual({});
});

describe("what is early", () => {
  const early = { kind: "early" } as const;

  it("is held, then refused, and its connection closed", async () => {
    const { clock, arrive } = stage(early);
    const { end, sent } = arrive();
    await clock.advance(HELD_MS - 1);
    expect(end).toEqual({});
    await clock.advance(1);
    await settled();
    expect(end.error).toMatchObject(LIMITED);
    expect(sent).toEqual({ connection: "close" });
    expect(clock.pending).toBe(0);
  });

  it("is refused at once where as many are held; whoever leaves makes room", async () => {
    const { clock, arrive } = stage(early);
    const held = Array.from({ length: HELD_MAX }, () => arrive());
    const surplus = arrive();
    await settled();
    expect(surplus.end.error).toMatchObject(LIMITED);
    expect(surplus.sent).toEqual({ connection: "close" });
    held[0]!.gone();
    await settled();
    const next = arrive();
    await settled();
    expect(next.end).toEqual({});
    await clock.advance(HELD_MS);
    await settled();
    expect(clock.pending).toBe(0);
  });

  it("ends at once when the server stops", async () => {
    const { polls, arrive } = stage(early);
    const { end } = arrive();
    polls.stop();
    await settled();
    expect(end.error).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  });
});
