// A server on Postgres whose start fails at the end leaves nothing open: whoever runs it in a process of their own starts it again
// there. (One with a log of its own: test/server/start-fails.test.ts.)

import { expect, onTestFinished, test } from "vitest";
import { diagnosticsOf } from "../../src/cli/server/diagnostics.ts";
import { parseServerConfig } from "../../src/contract/index.ts";
import { electionConfig } from "../../src/core/raft/index.ts";
import { type LogSink, openLogSink } from "../../src/drivers/telemetry/index.ts";
import { startPostgresNode } from "../../src/node/worlds/postgres.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, startPostgres } from "../servers/index.ts";

test("what fails when the API listens already closes it, and the name is free again in the database", async () => {
  const server = await startPostgres();
  onTestFinished(() => server.end());
  const directory = await temporaryDirectory("start-fails", undefined);
  onTestFinished(() => removeDirectory(directory));
  const url = await server.createDatabase("site");
  const file = {
    node_id: "n1",
    data_dir: directory,
    backend: url,
    api: { listen: `127.0.0.1:${await freePort()}` },
  };
  const config = parseServerConfig(file, { environment: {}, configDir: directory, checkElection: electionConfig });
  const sink = openLogSink({ level: "silent", destination: "/dev/null" });
  const start = (logs: LogSink): ReturnType<typeof startPostgresNode> =>
    startPostgresNode(config, {
      bootstrap: false,
      version: "0",
      logs,
      diagnostics: () => diagnosticsOf(config, logs),
      onFatal: () => undefined,
      postgres: { url },
      enabled: true,
    });
  const info: LogSink["logger"]["info"] = (fields) => {
    if (fields["event"] === "listening") throw new Error("no room for the log");
  };
  await expect(start({ ...sink, logger: { ...sink.logger, info } })).rejects.toThrow("no room for the log");
  const node = await start(sink);
  await node.stop();
});
