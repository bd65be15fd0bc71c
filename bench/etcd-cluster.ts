// Three etcd processes on free ports of 127.0.0.1, for comparison: heartbeat 50 ms, election 300 ms, fsync on as it is by
// default, everything else as it comes.
//
//   started ─▶ (a node: running ⇄ killed, stopped ⇄ continued) ─▶ ended: no process, no file is left

import { join } from "node:path";
import { removeDirectory, temporaryDirectory } from "../test/servers/directories.ts";
import { freePort, waitFor } from "../test/servers/index.ts";
import { findProgram, ServerProcess } from "../test/servers/server-process.ts";
import { etcdStatus, moveLeader, type EtcdStatus } from "./etcd-calls.ts";
import { GrpcConnection } from "./grpc.ts";

const HOST = "127.0.0.1";
const HEARTBEAT_MS = 50;
const ELECTION_MS = 300;

interface EtcdNode {
  readonly name: string;
  readonly port: number;
  readonly args: readonly string[];
  process: ServerProcess | null;
  control: GrpcConnection | null;
}

export class EtcdCluster {
  readonly ports: Record<string, number> = {};
  version = "";
  readonly #program: string;
  readonly #directory: string;
  readonly #nodes = new Map<string, EtcdNode>();

  private constructor(program: string, directory: string) {
    this.#program = program;
    this.#directory = directory;
  }

  /** Null where there is no etcd on PATH. */
  static async start(): Promise<EtcdCluster | null> {
    const program = findProgram("etcd");
    if (program === undefined) return null;
    const cluster = new EtcdCluster(program, await temporaryDirectory("bench-etcd", undefined));
    try {
      const names = ["e1", "e2", "e3"];
      const peers = new Map<string, string>();
      for (const name of names) peers.set(name, `http://${HOST}:${await freePort()}`);
      for (const name of names) await cluster.#add(name, peers);
      for (const name of names) cluster.restart(name);
      const leader = await cluster.leader();
      cluster.version = (await cluster.#status(leader))?.version ?? "";
      return cluster;
    } catch (error) {
      await cluster.end();
      throw error;
    }
  }

  async #add(name: string, peers: ReadonlyMap<string, string>): Promise<void> {
    const port = await freePort();
    this.ports[name] = port;
    const client = `http://${HOST}:${port}`;
    const args = [
      `--name=${name}`,
      `--data-dir=${join(this.#directory, name)}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peers.get(name)}`,
      `--initial-advertise-peer-urls=${peers.get(name)}`,
      `--initial-cluster=${[...peers].map(([id, url]) => `${id}=${url}`).join(",")}`,
      `--heartbeat-interval=${HEARTBEAT_MS}`,
      `--election-timeout=${ELECTION_MS}`,
      "--logger=zap",
      "--log-level=error",
    ];
    this.#nodes.set(name, { name, port, args, process: null, control: null });
  }

  restart(name: string): void {
    const node = this.#nodes.get(name)!;
    node.process = new ServerProcess({
      command: this.#program,
      args: node.args,
      directory: this.#directory,
      lastSignal: "SIGKILL",
    });
  }

  get pids(): number[] {
    return [...this.#nodes.values()].flatMap(({ process: server }) => server?.pid ?? []);
  }

  signal(name: string, signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
    this.#nodes.get(name)!.process?.signal(signal);
  }

  async gone(name: string): Promise<void> {
    await this.#nodes.get(name)!.process?.gone;
  }

  /** Who leads, once a majority says so and all three answer. */
  async leader(): Promise<string> {
    let leader: string | undefined;
    await waitFor("etcd to have a leader and three nodes that answer", async () => {
      const statuses = await Promise.all([...this.#nodes.keys()].map((name) => this.#status(name)));
      if (statuses.includes(null)) return false;
      const [first] = statuses as EtcdStatus[];
      if (first!.leaderId === 0n || !statuses.every((status) => status!.leaderId === first!.leaderId)) return false;
      leader = [...this.#nodes.keys()].find((_, at) => statuses[at]!.memberId === first!.leaderId);
      return leader !== undefined;
    });
    return leader!;
  }

  async moveLeader(from: string, to: string): Promise<boolean> {
    const target = await this.#status(to);
    return target !== null && (await moveLeader(this.#control(from), target.memberId));
  }

  async end(): Promise<void> {
    for (const { control } of this.#nodes.values()) control?.close();
    for (const node of this.#nodes.values()) await node.process?.end("SIGKILL");
    await removeDirectory(this.#directory);
  }

  async #status(name: string): Promise<EtcdStatus | null> {
    return etcdStatus(this.#control(name));
  }

  #control(name: string): GrpcConnection {
    const node = this.#nodes.get(name)!;
    if (node.control === null || node.control.isOver) node.control = new GrpcConnection(node.port);
    return node.control;
  }
}
