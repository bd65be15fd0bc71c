// A server that can't start, or whose disk fails while it stops, leaves nothing open: whoever runs it in a process of their own
// starts it again there, on the same directory and the same ports.

import { once } from "node:events";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { diagnosticsOf } from "../../src/cli/server/diagnostics.ts";
import { parseServerConfig, type ServerConfig } from "../../src/contract/index.ts";
import { electionConfig } from "../../src/core/raft/index.ts";
import { type LogSink, openLogSink } from "../../src/drivers/telemetry/index.ts";
import { type ServerNode, type ServerNodeOptions, startServerNode } from "../../src/node/worlds/embedded.ts";
import type { Clearance } from "../../src/ports/clearance.ts";
import type { Disk, DiskFile } from "../../src/ports/disk.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort } from "../servers/index.ts";

async function configured(): Promise<ServerConfig> {
  const directory = await temporaryDirectory("start-fails", undefined);
  onTestFinished(() => removeDirectory(directory));
  const file = {
    node_id: "n1",
    data_dir: directory,
    peer: { listen: `127.0.0.1:${await freePort()}` },
    api: { listen: `127.0.0.1:${await freePort()}` },
  };
  return parseServerConfig(file, { environment: {}, configDir: directory, checkElection: electionConfig });
}

function start(config: ServerConfig, more: Partial<ServerNodeOptions> = {}): Promise<ServerNode> {
  const logs = openLogSink({ level: "silent", destination: "/dev/null" });
  const diagnostics = (): ReturnType<typeof diagnosticsOf> => diagnosticsOf(config, logs);
  return startServerNode(config, {
    bootstrap: true,
    version: "0",
    logs,
    diagnostics,
    onFatal: () => undefined,
    ...more,
  });
}

/** On the same directory and ports, which only one can have. */
async function startsAgain(config: ServerConfig): Promise<void> {
  const node = await start(config);
  await node.stop();
}

test("where another process has the API's port, the rest is closed", async () => {
  const config = await configured();
  const other = createServer().listen(config.api.listen.port, config.api.listen.host);
  await once(other, "listening");
  await expect(start(config)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  other.close();
  await once(other, "close");
  await startsAgain(config);
});

test("what fails when the API listens already closes it", async () => {
  const config = await configured();
  const sink = openLogSink({ level: "silent", destination: "/dev/null" });
  const logger: LogSink["logger"] = {
    ...sink.logger,
    info: (fields) => {
      if (fields["event"] === "listening") throw new Error("no room for the log");
    },
  };
  await expect(start(config, { logs: { ...sink, logger } })).rejects.toThrow("no room for the log");
  await startsAgain(config);
});

test("what fails when consensus runs already stops it", async () => {
  const config = await configured();
  const clearance: Clearance = {
    clear: () => Promise.resolve(false),
    empty: () => Promise.resolve(false),
    opened: () => undefined,
    release: () => {
      throw new Error("no supervisor");
    },
    drained: () => undefined,
  };
  await expect(start(config, { clearance })).rejects.toThrow("no supervisor");
  await startsAgain(config);
});

test("a disk that fails at the end does not keep the directory and the ports", async () => {
  const config = await configured();
  let isBroken = false;
  const node = await start(config, { world: { wrapDisk: (disk) => breaking(disk, () => isBroken) } });
  isBroken = true;
  await expect(node.stop()).rejects.toThrow("EIO");
  await startsAgain(config);
});

/** Files are closed with an error. */
function breaking(disk: Disk, isBroken: () => boolean): Disk {
  const file = (one: DiskFile): DiskFile => ({
    name: one.name,
    append: (bytes, label) => one.append(bytes, label),
    reserve: (sizeBytes, label) => one.reserve(sizeBytes, label),
    truncate: (sizeBytes, label) => one.truncate(sizeBytes, label),
    fdatasync: (label) => one.fdatasync(label),
    close: async () => {
      await one.close();
      if (isBroken()) throw new Error("EIO: i/o error, close");
    },
  });
  return new Proxy(disk, {
    get: (target, name) => {
      if (name === "create" || name === "open")
        return async (...args: Parameters<Disk["open"]>) => file(await target[name](...args));
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
