// Worlds in which the conformance suite is played.

import type { Backend } from "../../src/entry/index.ts";
import type { ConformanceWorld, TestBackend } from "../../src/entry/testing.ts";
import { testBackend, type TestBackendOptions } from "../../src/entry/testing.ts";
import { startProxy, type TcpProxy } from "../servers/index.ts";

/** The backend in memory, with every fault; `bend` puts a mistake into it. */
export function memoryWorld(
  options: TestBackendOptions = {},
  bend: (world: ConformanceWorld, backend: TestBackend) => ConformanceWorld = (world) => world,
): ConformanceWorld {
  const backend = testBackend(options);
  const world: ConformanceWorld = {
    create: (name) => backend.instance(name),
    resource: { write: (scope, epoch, value) => backend.resource(scope).write(epoch, value) },
    advance: (ms) => backend.advance(ms),
    killFreesAtOnce: true,
    kill: (name) => backend.kill(name),
    freeze: (name) => backend.freeze(name),
    thaw: (name) => backend.thaw(name),
    cut: (name) => backend.cut(name),
    heal: (name) => backend.heal(name),
    dispose: () => Promise.resolve(),
  };
  return bend(world, backend);
}

/**
 * Instances in one process, each behind a proxy of its own in front of a real server. Freezing one is not possible
 * here: tests with processes do that.
 */
export function proxiedWorld(options: {
  readonly serverPort: number;
  readonly killFreesAtOnce: boolean;
  backend(proxyPort: number): Backend;
  write(scope: string, epoch: number, value: string): Promise<unknown>;
}): ConformanceWorld {
  const proxies = new Map<string, TcpProxy>();
  const proxy = (name: string): TcpProxy => {
    const known = proxies.get(name);
    if (known === undefined) throw new Error(`there is no instance ${name}`);
    return known;
  };
  return {
    create: async (name) => {
      const started = proxies.get(name) ?? (await startProxy({ host: "127.0.0.1", port: options.serverPort }));
      proxies.set(name, started);
      return options.backend(started.port);
    },
    resource: { write: (scope, epoch, value) => options.write(scope, epoch, value) },
    killFreesAtOnce: options.killFreesAtOnce,
    // As its machine does for a process that is gone: connections are reset, and there are no new ones.
    kill: async (name) => {
      proxy(name).cut("both", "refused");
      proxy(name).reset();
      await Promise.resolve();
    },
    cut: async (name) => {
      proxy(name).cut("both");
      await Promise.resolve();
    },
    heal: (name) => proxy(name).heal("resume"),
    dispose: async () => {
      await Promise.all([...proxies.values()].map((one) => one.end()));
    },
  };
}
