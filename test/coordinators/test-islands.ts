// Islands of one server each, with TLS of one authority, that know each other as transaction coordinators. Real processes on free ports of loopback.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, OPERATOR_KEY, VIEWER_KEY, waitFor } from "../servers/index.ts";
import { runCommand } from "../servers/runbook.ts";
import { TenureNode } from "../servers/tenure-node.ts";

const HOST = "127.0.0.1";
/** Three processes that load their sources took 39 s where fifteen others wanted two processors. */
export const ISLANDS_MS_MAX = 120_000;

/** What tests look at, of GET /v1/islands. */
interface SeenIslands {
  readonly leader: { readonly identity: string; readonly term: number } | null;
  readonly acts_in_term: number | null;
  readonly voters: readonly { readonly identity: string; readonly incarnation: string; readonly state: string }[];
  readonly registry: readonly { readonly backend_hash: string }[];
}

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class TestIslands {
  readonly directory: string;
  readonly #nodes = new Map<string, TenureNode>();

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** When it resolves all of them vote and are registered, and one leads. */
  static async start(...ids: readonly string[]): Promise<TestIslands> {
    const islands = new TestIslands(await temporaryDirectory("islands", undefined));
    try {
      await islands.#must("tenure cert init --dir ca");
      for (const id of ids) await islands.make(id);
      const seeds = ids.map((id) => islands.node(id).url);
      for (const id of ids) islands.begin(id, seeds);
      await islands.settled(...ids);
      return islands;
    } catch (error) {
      const logs = islands.nodes.map((node) => `${node.id}:\n${node.log().slice(-2_000)}`);
      await islands.end();
      throw new Error(`${(error as Error).message}\n${logs.join("\n")}`, { cause: error });
    }
  }

  get nodes(): readonly TenureNode[] {
    return [...this.#nodes.values()];
  }

  node(id: string): TenureNode {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`there is no island ${id}`);
    return node;
  }

  /** With a certificate and a port of its own; not started. */
  async make(id: string): Promise<TenureNode> {
    const home = join(this.directory, id);
    await this.#must(`tenure cert issue --dir ca --out ${id} --node-id ${id} --host ${HOST}`);
    const listen = `${HOST}:${await freePort()}`;
    const tls = { cert_file: `${id}.crt`, key_file: `${id}.key`, client_ca_file: "ca.crt" };
    const node = new TenureNode(home, {
      node_id: id,
      data_dir: join(home, "data"),
      peer: { listen: `${HOST}:${await freePort()}` },
      api: { listen, advertise: `https://${listen}`, tls },
      keys: [keyEntry("operator", OPERATOR_KEY), keyEntry("viewer", VIEWER_KEY)],
    });
    this.#nodes.set(id, node);
    return node;
  }

  /** For the first time. */
  begin(id: string, seeds: readonly string[]): void {
    this.node(id).configure({ tc: { join: [...seeds] } });
    this.node(id).start(["--bootstrap"]);
  }

  /** Null where it does not answer. */
  async seen(id: string): Promise<SeenIslands | null> {
    const { status, body } = await this.node(id)
      .call<SeenIslands>("/v1/islands", { key: VIEWER_KEY })
      .catch(() => ({ status: 0, body: null }));
    return status === 200 ? body : null;
  }

  /** Who leads, as it says itself. */
  async leader(): Promise<string | undefined> {
    for (const id of this.#nodes.keys()) if (((await this.seen(id))?.acts_in_term ?? null) !== null) return id;
    return undefined;
  }

  /** These, and no others, vote, answer and are registered. */
  async settled(...ids: readonly string[]): Promise<void> {
    const names = ids.toSorted().join();
    await waitFor(
      `a leader of the voters ${names}`,
      async () => {
        const seen = await this.seen((await this.leader()) ?? ids[0] ?? "");
        if (seen === null || seen.acts_in_term === null) return false;
        const voters = seen.voters.filter(({ state }) => state === "leads" || state === "answers");
        const isAll =
          seen.voters.length === ids.length &&
          voters
            .map(({ identity }) => identity)
            .toSorted()
            .join() === names;
        return isAll && seen.registry.length >= ids.length;
      },
      ISLANDS_MS_MAX,
    );
  }

  async alerts(id: string): Promise<readonly string[]> {
    return (await this.node(id).view())?.alerts.map(({ name }) => name) ?? [];
  }

  /** A command as an operator gives it, who trusts the authority and has a key; and whatever else is in `variables`. */
  run(command: string, variables: Readonly<Record<string, string>> = {}): Promise<Said> {
    const own = { TENURE_SERVERS_CA_FILE: join(this.directory, "ca", "ca.crt"), TENURE_API_KEY: VIEWER_KEY };
    const environment = { ...own, ...variables };
    return runCommand(command, { directory: this.directory, environment });
  }

  async end(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill9()));
    await removeDirectory(this.directory);
  }

  async #must(command: string): Promise<void> {
    const said = await this.run(command);
    if (said.code !== 0) throw new Error(`${command}: ${said.stderr}`);
  }
}

function keyEntry(role: "operator" | "viewer", key: string) {
  return { name: `the-${role}`, role, sha256: createHash("sha256").update(key).digest("hex") };
}
