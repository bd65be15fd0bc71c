// What a peer's request is answered where it is too much.

import { expect, it } from "vitest";
import type { MeshLinks } from "../../ports/mesh/links.ts";
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
