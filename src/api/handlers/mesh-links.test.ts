// What a peer's request counts for, and what it is answered where that is too much.

import { expect, it } from "vitest";
import { DELIVERY_BYTES_MAX } from "../../contract/mesh/limits.ts";
import type { MeshLinks } from "../../ports/mesh/links.ts";
import type { Call, Service } from "./handler.ts";
import { meshLinksHandlers } from "./mesh-links.ts";

const service = { cluster: { currentRole: () => "LEADER" }, nodeId: "n1" } as unknown as Service;

function stage(retryAfterMs = 0) {
  const counted: number[] = [];
  const streams = { open: 0 };
  const limited = { kind: "limited", retryAfterMs } as const;
  const links = {
    open: (_controller: string, _heads: readonly string[], bytes: number) => {
      counted.push(bytes);
      return retryAfterMs > 0 ? limited : { kind: "open", stream: { next: async () => null, close: () => undefined } };
    },
    deliver: async (_delivery: unknown, bytes: number) => {
      counted.push(bytes);
      return retryAfterMs > 0 ? limited : { kind: "delivered", body: { pages: [], heads: [] } };
    },
  } as unknown as MeshLinks;
  const { meshStream, broadcast } = meshLinksHandlers(service, links);
  const call = (headers: Readonly<Record<string, string>>) => ({
    body: { controller: "far", heads: [] },
    caller: { how: "key", name: "far", role: "controller" },
    header: (name: string) => headers[name],
    takeStream: () => {
      streams.open++;
      return () => void streams.open--;
    },
  });
  return {
    counted,
    streams,
    stream: (headers: Readonly<Record<string, string>>) => meshStream(call(headers) as unknown as Call<"meshStream">),
    broadcast: (headers: Readonly<Record<string, string>>) => broadcast(call(headers) as unknown as Call<"broadcast">),
  };
}

it("a request counts for its length, and one that does not say it for the longest", async () => {
  const { counted, stream, broadcast } = stage();
  for (const send of [stream, broadcast]) {
    await send({ "content-length": "70" });
    await send({ "transfer-encoding": "chunked" });
  }
  expect(counted).toEqual([70, DELIVERY_BYTES_MAX, 70, DELIVERY_BYTES_MAX]);
});

it("too much is answered with the time after which it fits, and a stream that was not opened keeps no place", async () => {
  const { streams, stream, broadcast } = stage(2_300);
  const refused = { code: "RATE_LIMITED", retryAfterS: 3 };
  await expect(async () => broadcast({ "content-length": "1" })).rejects.toMatchObject(refused);
  await expect(async () => stream({ "content-length": "1" })).rejects.toMatchObject(refused);
  expect(streams.open).toBe(0);
});
