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
    resource: { write: (scope, epoch) => inForce(urls, scope, epoch, key) },
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

/** A resource that asks the cluster which epoch is in force, past all of our code. */
async function inForce(urls: readonly string[], scope: string, epoch: number, key: string | undefined): Promise<void> {
  const headers = key === undefined ? {} : { "x-api-key": key };
  let last: unknown;
  for (const url of urls) {
    try {
      const response = await fetch(`${url}/v1/scopes/${encodeURIComponent(scope)}?consistency=linearizable`, {
        headers,
      });
      const view = (await response.json()) as { holder?: { epoch: number } | null };
      if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${JSON.stringify(view)}`);
      if (view.holder?.epoch !== epoch) throw new StaleEpochError(scope, epoch);
      return;
    } catch (error) {
      if (StaleEpochError.is(error)) throw error;
      last = error;
    }
  }
  throw last;
}
