// `tenure event tail --no-follow --after N:HASH`, where N is the last event: nothing comes that would show another history.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { event } from "./command.ts";

const HASH = "a".repeat(64);

async function tailAfter(point: string): Promise<unknown> {
  const server = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    const isStats = request.url!.startsWith("/v1/stats");
    const events = request.url!.startsWith("/api/events/since/4?") ? [{ eventHash: HASH }] : [];
    response.end(JSON.stringify(isStats ? { first_sequence: 1, last_sequence: 5 } : { events, members: [] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    return await event(["tail", "--after", point, "--no-follow", "--url", url]).catch((error: unknown) => error);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

it("the last event as it was seen: nothing new, exit 0", async () => {
  expect(await tailAfter(`5:${HASH}`)).toBe(0);
  expect(await tailAfter("5")).toBe(0);
});

it("another one than was seen: HISTORY_REWRITTEN", async () => {
  expect(await tailAfter(`5:${"f".repeat(64)}`)).toMatchObject({ code: "HISTORY_REWRITTEN", seen: { sequence: 5 } });
});
