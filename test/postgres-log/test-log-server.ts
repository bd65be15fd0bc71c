// What the tests of the log on a real server share: one server for a file, a database for each test, nodes that end with it.

import { afterAll, afterEach, beforeAll } from "vitest";
import { type PostgresServer, startPostgres } from "../servers/index.ts";
import { type LogNode, logNode, type LogNodeOptions } from "./test-log-node.ts";

export interface LogServer {
  /** Not before the tests begin. */
  readonly server: () => PostgresServer;
  readonly freshDatabase: () => Promise<{ name: string; url: string }>;
  readonly started: (url: string, name: string, options?: LogNodeOptions) => Promise<LogNode>;
}

/** `prefix`: of the names of its databases. */
export function useLogServer(prefix: string): LogServer {
  let server: PostgresServer | undefined;
  let databases = 0;
  const nodes: LogNode[] = [];
  const running = (): PostgresServer => {
    if (server === undefined) throw new Error("the server is started before the first test");
    return server;
  };
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterEach(async () => {
    await Promise.all(nodes.splice(0).map(({ log }) => log.close()));
  });
  afterAll(async () => {
    await server?.end();
  });
  return {
    server: running,
    freshDatabase: async () => {
      const name = `${prefix}_${++databases}`;
      return { name, url: await running().createDatabase(name) };
    },
    started: async (url, name, options = {}) => {
      const node = logNode(url, name, options);
      nodes.push(node);
      await node.log.start();
      return node;
    },
  };
}
