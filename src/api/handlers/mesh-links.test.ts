// What a peer's request is answered where it is too much.

import { expect, it } from "vitest";
import type { MeshLinks } from "../../ports/mesh/links.ts";
import type { PageOutcome } from "../../ports/mesh/sites.ts";
import type { Refusal } from "../refusal.ts";
import type { Call, Service } from "./handler.ts";
import { meshLinksHandlers } from "./mesh-links.ts";

const service = { cluster: { currentRole: () => "LEADER" }, nodeId: "n1" } as unknown as Service;

function stage(retryAfterMs: number) {
  const streams = { open: 0 };
  const limited = { kind: "limited", retryAfterMs } as const;
  const links = {
    open: () => limited,
    deliver: async () => limited,
  } as unknown as MeshLinks;
  const { meshStream, broadcast } = meshLinksHandlers(service, links);
  const call = {
    body: { controller: "far", heads: [] },
    caller: { how: "key", name: "far", role: "controller" },
    takeStream: () => {
      streams.open++;
      return () => void streams.open--;
    },
  };
  return {
    streams,
    stream: () => meshStream(call as unknown as Call<"meshStream">),
    broadcast: () => broadcast(call as unknown as Call<"broadcast">),
  };
}

it("too much is answered with the time after which it fits, and a stream that was not opened keeps no place", async () => {
  const { streams, stream, broadcast } = stage(2_300);
  const refused = { code: "RATE_LIMITED", retryAfterS: 3 };
  await expect(async () => broadcast()).rejects.toMatchObject(refused);
  await expect(async () => stream()).rejects.toMatchObject(refused);
  expect(streams.open).toBe(0);
});

/** A request with one page, of which this is said. */
async function refusalOf(outcome: PageOutcome): Promise<unknown> {
  const links = { deliver: async () => ({ kind: "delivered", body: { pages: [outcome], heads: [] } }) };
  const { broadcast } = meshLinksHandlers(service, links as unknown as MeshLinks);
  const call = { body: { controller: "far", pages: [{}] }, caller: { how: "key", name: "far", role: "controller" } };
  return (async () => broadcast(call as unknown as Call<"broadcast">))().catch((error: unknown) => error);
}

it("a page that is refused is refused with its problem, and with the event where one is known", async () => {
  expect(await refusalOf({ line: "far.0", error: "EVENT_INVALID", problem: "items are not 1 to 512" })).toMatchObject({
    code: "EVENT_INVALID",
    message: "The page of far.0 is refused: items are not 1 to 512.",
  });
  expect(await refusalOf({ line: "far.0", error: "EVENT_INVALID", problem: "it is gone", sequence: 7 })).toMatchObject({
    message: "The page of far.0 is refused: event 7: it is gone.",
    details: { line: "far.0", sequence: 7 },
  });
  expect(await refusalOf({ line: "", error: "EVENT_INVALID", problem: "it is no page" })).toMatchObject({
    message: "The page is refused: it is no page.",
  });
});

it("what a page says of itself reaches nobody's terminal as it came, and is bounded", async () => {
  const foreign = `\u001B[2J${"x".repeat(5_000)}`;
  const { message, details } = (await refusalOf({
    line: foreign,
    error: "EVENT_INVALID",
    problem: foreign,
  })) as Refusal;
  expect(JSON.stringify([message, details])).not.toMatch(/u001[bB]/);
  expect(message.length).toBeLessThan(500);
});
