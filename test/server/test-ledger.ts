// Clients that take scopes from a cluster, each scope once and for long, and remember what they were told. What was
// acknowledged must be there ever after, under the same epoch; epochs of later grants are higher.

import { CLIENT_KEY, type TenureCluster, type TenureNode, waitFor } from "../servers/index.ts";

const TTL_MS = 600_000;
/** A request into a frozen node is given up, and asked elsewhere. */
const ASK_MS_MAX = 2_000;

interface Acknowledged {
  readonly scope: string;
  readonly session: string;
  readonly epoch: number;
}

interface Granted {
  readonly granted?: boolean;
  readonly epoch?: number;
  readonly error?: string;
  readonly leader_id?: string | null;
}

interface Scopes {
  readonly scopes: readonly {
    readonly scope: string;
    readonly epoch: number;
    readonly holder: { readonly epoch: number; readonly identity: string } | null;
  }[];
  readonly next: string | null;
}

let scopes = 0;

export function freshScope(): string {
  return `scope-${++scopes}`;
}

export class Ledger {
  readonly acknowledged: Acknowledged[] = [];
  /** How often a write had to be sent before it was acknowledged: of the worst one since the last look. */
  worstTries = 0;
  /** What those that were sent in vain were answered. */
  readonly refusals: string[] = [];
  readonly #cluster: TenureCluster;
  #leader: TenureNode | undefined;
  #load: { isOn: boolean; readonly done: Promise<unknown> } | undefined;

  constructor(cluster: TenureCluster) {
    this.#cluster = cluster;
  }

  get highestEpoch(): number {
    return Math.max(0, ...this.acknowledged.map(({ epoch }) => epoch));
  }

  /** Sent until it is acknowledged, each time where the leader is found; the session makes it one and the same request. */
  async write(scope = freshScope()): Promise<number> {
    const session = `session-of-${scope}`;
    for (let tries = 1; ; tries++) {
      const leader = (this.#leader ??= await this.#discover());
      const said = await ask(leader, scope, session).catch((error: unknown): Granted => ({ error: String(error) }));
      if (said.granted === true && said.epoch !== undefined) {
        this.acknowledged.push({ scope, session, epoch: said.epoch });
        this.worstTries = Math.max(this.worstTries, tries);
        return said.epoch;
      }
      this.refusals.push(said.error ?? "not granted");
      this.#leader = undefined;
    }
  }

  /** Clients that write one after the other until `rest`. */
  begin(clients = 2): void {
    const load = { isOn: true, done: Promise.resolve() as Promise<unknown> };
    const one = async (): Promise<void> => {
      while (load.isOn) await this.write();
    };
    load.done = Promise.all(Array.from({ length: clients }, one));
    this.#load = load;
  }

  /** More writes than now are acknowledged. */
  async progress(writes = 10): Promise<void> {
    const goal = this.acknowledged.length + writes;
    await waitFor(`${writes} more writes`, () => this.acknowledged.length >= goal);
  }

  async rest(): Promise<void> {
    if (this.#load === undefined) return;
    this.#load.isOn = false;
    await this.#load.done;
    this.#load = undefined;
  }

  /** What is not as it was acknowledged, in words. */
  async lost(): Promise<string[]> {
    const found = new Map((await this.#scopes()).map((one) => [one.scope, one.holder]));
    const epochs = new Set<number>();
    return this.acknowledged.flatMap(({ scope, session, epoch }) => {
      const holder = found.get(scope);
      if (holder?.epoch !== epoch || holder.identity !== session) {
        return [`${scope} was granted under ${epoch}; now ${JSON.stringify(holder)}`];
      }
      if (epochs.has(epoch)) return [`epoch ${epoch} was granted twice`];
      epochs.add(epoch);
      return [];
    });
  }

  /** Of one node, and begun again where leadership moves meanwhile, as it may on a busy machine. */
  async #scopes(): Promise<Scopes["scopes"]> {
    let found: Scopes["scopes"] | null = null;
    await waitFor("a leader to list all scopes", async () => {
      found = await scopesAt(await this.#discover());
      return found !== null;
    });
    return found ?? [];
  }

  async #discover(): Promise<TenureNode> {
    return this.#cluster.node(await this.#cluster.waitForLeader());
  }
}

/** Page by page; null where one of them is refused. */
async function scopesAt(node: TenureNode): Promise<Scopes["scopes"] | null> {
  const found: Scopes["scopes"][number][] = [];
  for (let after = ""; ;) {
    const path = `/v1/scopes?consistency=linearizable${after}`;
    const answer = await node.call<Scopes>(path, { key: CLIENT_KEY }).catch(() => null);
    if (answer?.status !== 200) return null;
    found.push(...answer.body.scopes);
    if (answer.body.next === null) return found;
    after = `&after=${encodeURIComponent(answer.body.next)}`;
  }
}

export async function ask(node: TenureNode, scope: string, session: string, limitMs = ASK_MS_MAX): Promise<Granted> {
  const body = { session, identity: session, ttl_ms: TTL_MS, wait_ms: 0 };
  const options = { key: CLIENT_KEY, body, limitMs };
  return (await node.call<Granted>(`/v1/scopes/${scope}/acquire`, options)).body;
}
