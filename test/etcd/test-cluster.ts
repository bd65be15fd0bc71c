// Three members of etcd, for what one alone can't show: a leader of etcd that is deposed. Ended by end(), or with the
// process that started them.

import { join } from "node:path";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort } from "../servers/ports.ts";
import { findProgram, ServerProcess, waitFor } from "../servers/server-process.ts";
import { api } from "./test-seat.ts";

const SIZE = 3;

export interface EtcdMember {
  readonly endpoint: string;
  readonly process: ServerProcess;
}

export class EtcdCluster {
  readonly members: readonly EtcdMember[];
  readonly #directories: readonly string[];

  private constructor(members: readonly EtcdMember[], directories: readonly string[]) {
    this.members = members;
    this.#directories = directories;
  }

  static async start(flags: readonly string[]): Promise<EtcdCluster> {
    const plans = await Promise.all(
      Array.from({ length: SIZE }, async (_, index) => ({
        name: `member-${index}`,
        directory: await temporaryDirectory("etcd-member", undefined),
        client: `http://127.0.0.1:${await freePort()}`,
        peer: `http://127.0.0.1:${await freePort()}`,
      })),
    );
    const peers = plans.map(({ name, peer }) => `${name}=${peer}`).join(",");
    const members = plans.map(({ name, directory, client, peer }) => {
      const args = [
        `--name=${name}`,
        `--data-dir=${join(directory, "data")}`,
        `--listen-client-urls=${client}`,
        `--advertise-client-urls=${client}`,
        `--listen-peer-urls=${peer}`,
        `--initial-advertise-peer-urls=${peer}`,
        `--initial-cluster=${peers}`,
        ...flags,
      ];
      const command = findProgram("etcd") ?? "etcd";
      return { endpoint: client, process: new ServerProcess({ command, args, directory, lastSignal: "SIGKILL" }) };
    });
    const cluster = new EtcdCluster(
      members,
      plans.map(({ directory }) => directory),
    );
    await waitFor("the members to elect a leader", async () => (await cluster.leader(members)) !== undefined);
    return cluster;
  }

  /** The member that says of itself that it leads, among these. */
  async leader(among: readonly EtcdMember[]): Promise<EtcdMember | undefined> {
    for (const member of among) {
      const status = await api(member.endpoint, "maintenance/status", {}).catch(() => undefined);
      if (status?.leader !== undefined && status.leader === status.header?.member_id) return member;
    }
    return undefined;
  }

  async end(): Promise<void> {
    await Promise.all(this.members.map((member) => member.process.end("SIGKILL")));
    await Promise.all(this.#directories.map(removeDirectory));
  }
}
