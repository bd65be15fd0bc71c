// Starts test-child.ts, and ends it with the test.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { PeerTls } from "../../src/drivers/wire/index.ts";
import { freePort } from "../servers/index.ts";
import { atTheEnd } from "./test-node.ts";

export interface NodeProcess {
  readonly port: number;
  readonly address: string;
  signal(signal: NodeJS.Signals): void;
  /** Resolves when it is gone. */
  kill(): Promise<void>;
}

export interface ProcessOptions {
  readonly seeds: Readonly<Record<string, string>>;
  readonly port?: number;
  readonly incarnation?: string;
  readonly tls?: PeerTls;
}

export async function startProcess(nodeId: string, options: ProcessOptions): Promise<NodeProcess> {
  const port = options.port ?? (await freePort());
  const { seeds, tls = null, incarnation = "1" } = options;
  const child: ChildProcess = spawn(
    process.execPath,
    [new URL("test-child.ts", import.meta.url).pathname, JSON.stringify({ nodeId, port, incarnation, seeds, tls })],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const exit = once(child, "exit");
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exit;
  };
  atTheEnd(kill);
  await Promise.race([
    once(child.stdout!, "data"),
    exit.then(() => {
      throw new Error(`the process of ${nodeId} ended while it was starting`);
    }),
  ]);
  return { port, address: `127.0.0.1:${port}`, signal: (signal) => void child.kill(signal), kill };
}
