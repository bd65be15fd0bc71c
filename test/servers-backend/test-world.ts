// Worlds for the conformance suite on a cluster: each instance has a proxy of its own in front of each node, and knows no
// other way to them.

import type { Backend } from "../../src/entry/index.ts";
import { StaleEpochError } from "../../src/entry/index.ts";
import { servers } from "../../src/entry/servers.ts";
import type { ConformanceWorld } from "../../src/entry/testing.ts";
import { startProxy, type TcpProxy } from "../servers/index.ts";

const TTL_MS = 3_000;

export function clusterWorld(urls: readonly string[], key?: string): ConformanceWorld {
  const places = new Map<string, TcpProxy[]>();
  const each = async (name: string, act: (proxy: TcpProxy) => void | Promise<void>): Promise<void> => {
    const proxies = places.get(name);
    if (proxies === undefined) throw new Error(`there is no instance ${name}`);
    await Promise.all(proxies.map(async (proxy) => act(proxy)));
  };
  return {
    create: async (name): Promise<Backend> => {
      const proxies = places.get(name) ?? (await Promise.all(urls.map((url) => proxyTo(url))));
      places.set(name, proxies);
      const ways = proxies.map(({ port }) => `http://127.0.0.1:${port}`);
      return servers(ways, { ttlMs: TTL_MS, learnMembers: false, key });
    },
    resource: { write: (scope, epoch) => write(urls, scope, epoch, key) },
    // A lease outlives the process that has it.
    killFreesAtOnce: false,
    kill: (name) =>
      each(name, (proxy) => {
        proxy.cut("both", "refused");
        proxy.reset();
      }),
    cut: (name) => each(name, (proxy) => proxy.cut("both")),
    heal: (name) => each(name, (proxy) => proxy.heal("resume")),
    dispose: async () => {
      await Promise.all([...places.values()].flat().map((proxy) => proxy.end()));
    },
  };
}

function proxyTo(url: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(url);
  return startProxy({ host: hostname, port: Number(port) });
}

/** A resource whose fence is the servers' own, past all of our code: a value that is written with the epoch. */
async function write(urls: readonly string[], scope: string, epoch: number, key: string | undefined): Promise<void> {
  const headers = { "content-type": "application/json", ...(key === undefined ? {} : { "x-api-key": key }) };
  const body = JSON.stringify({ value: epoch, scope, epoch });
  let last: unknown;
  for (const url of urls) {
    try {
      const path = `/v1/values/${encodeURIComponent(`resource of ${scope}`)}`;
      const response = await fetch(url + path, { method: "PUT", headers, body });
      const answer = (await response.json()) as { error?: unknown };
      if (answer.error === "STALE_EPOCH") throw new StaleEpochError(scope, epoch);
      if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${JSON.stringify(answer)}`);
      return;
    } catch (error) {
      if (StaleEpochError.is(error)) throw error;
      last = error;
    }
  }
  throw last;
}
