// A cluster of processes in which every way from one node to another leads through a proxy of its own, so that any two groups of
// them can be parted; what operators ask for, and what they were answered; and what must never be seen, whoever looks when.

import { setTimeout as sleep } from "node:timers/promises";
import {
  OPERATOR_KEY,
  startProxy,
  startTenureCluster,
  type TcpProxy,
  type TenureAnswer,
  type TenureCluster,
  type TenureNode,
  type TenureView,
  waitFor,
} from "../servers/index.ts";

const HOST = "127.0.0.1";
/** Leaders fail over within seconds, and nobody campaigns because the machine is busy for half a second. */
const ELECTION = { election_timeout_min_ms: 1_000, election_timeout_max_ms: 2_000, heartbeat_interval_ms: 100 };
const CHANGE_MS_MAX = 60_000;
/** Often enough to see who leads in each term, and seldom enough to leave the machine to the nodes. */
const WATCH_EVERY_MS = 100;
const FOUNDING_MS_MAX = 150_000;

export interface Change {
  readonly op: "add" | "promote" | "remove" | "replace";
  readonly node_id: string;
  readonly promote?: boolean;
}

export class Mesh implements AsyncDisposable {
  readonly cluster: TenureCluster;
  /** What was seen and may not be. */
  readonly violations: string[] = [];
  /** By "from to". */
  readonly #links = new Map<string, TcpProxy>();
  readonly #leaderOfTerm = new Map<number, string>();
  #watching: { isOn: boolean; readonly done: Promise<void> } | undefined;

  private constructor(cluster: TenureCluster) {
    this.cluster = cluster;
  }

  /** So many nodes, of which the first ones found the cluster. All run. */
  static async start(nodes: number, founders: number): Promise<Mesh> {
    const mesh = new Mesh(await startTenureCluster({ nodes: 0, election: ELECTION }));
    try {
      await mesh.#found(nodes, founders);
    } catch (error) {
      await mesh[Symbol.asyncDispose]();
      throw error;
    }
    return mesh;
  }

  get nodes(): readonly TenureNode[] {
    return this.cluster.nodes;
  }

  /** Nothing passes between the two groups, in neither direction. */
  part(some: readonly string[], others: readonly string[] = this.#without(some)): void {
    for (const link of this.#between(some, others)) link.cut();
  }

  async heal(): Promise<void> {
    await Promise.all([...this.#links.values()].map((link) => link.heal()));
  }

  /** For what is sent from now on, each way. */
  slow(ms: number): void {
    for (const link of this.#links.values()) link.delay(ms);
  }

  /** "OK", or the code of the refusal. Rejects where the node answers with what is no answer, or not in time. */
  async change(at: string, change: Change): Promise<{ readonly code: string; readonly message: string }> {
    const call = { key: OPERATOR_KEY, body: change, limitMs: CHANGE_MS_MAX };
    const { status, body }: TenureAnswer = await this.cluster.node(at).call("/v1/admin/members", call);
    const message = String(body["message"]);
    if (status === 200) return { code: "OK", message };
    if (status >= 400 && status !== 500 && typeof body["error"] === "string") return { code: body["error"], message };
    throw new Error(`${at} answered ${status} to ${JSON.stringify(change)}: ${JSON.stringify(body)}`);
  }

  /** One of these that says that it leads, in the highest term of those that do. */
  async leaderAmong(ids: readonly string[]): Promise<string> {
    let found = "";
    await waitFor(`a leader among ${ids.join(", ")}`, async () => {
      const views = await Promise.all(ids.map((id) => this.cluster.node(id).view()));
      const leading = views.filter((view) => view?.role === "LEADER").toSorted((a, b) => b!.term - a!.term);
      found = leading[0]?.node_id ?? "";
      return found !== "";
    });
    return found;
  }

  async follows(id: string): Promise<void> {
    await waitFor(`${id} to know that it does not lead`, async () => {
      const view = await this.cluster.node(id).view();
      return view !== null && view.role !== "LEADER";
    });
  }

  /** `n1 voter`, …, as this node sees it. */
  async members(at: string): Promise<string[]> {
    return membersIn(await this.cluster.node(at).view());
  }

  /** Until all of these are members, and all agree on who else is, with which disk, and on who leads. */
  async agreed(ids: readonly string[], limitMs?: number): Promise<string[]> {
    let views: (TenureView | null)[] = [];
    const isSettled = (view: TenureView | null): boolean =>
      view !== null &&
      view.is_ready &&
      view.leader !== null &&
      view.members.length === ids.length &&
      view.members.every(({ node_id, kind }) => ids.includes(node_id) && (kind === "voter" || kind === "learner"));
    const isAgreed = async (): Promise<boolean> => {
      views = await Promise.all(ids.map((id) => this.cluster.node(id).view()));
      return views.every(isSettled) && new Set(views.map(shown)).size === 1;
    };
    await waitFor(`${ids.join(", ")} to agree`, isAgreed, limitMs).catch((error: unknown) => {
      const logs = this.nodes.map((node) => `${node.id}:\n${node.log().slice(-2_000)}`);
      throw new Error(`${(error as Error).message}:\n${views.map(shown).join("\n")}\n${logs.join("\n")}`);
    });
    return membersIn(views[0]!);
  }

  /** Looks at every node again and again, until the end. */
  watch(): void {
    const watching = { isOn: true, done: Promise.resolve() };
    watching.done = (async () => {
      while (watching.isOn) {
        await Promise.all(this.nodes.map(async (node) => this.#judge(await node.view())));
        await sleep(WATCH_EVERY_MS);
      }
    })();
    this.#watching = watching;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#watching !== undefined) this.#watching.isOn = false;
    await this.#watching?.done;
    await this.cluster.end();
    await Promise.all([...this.#links.values()].map((link) => link.end()));
  }

  /** Two leaders of one term, or two votes of one node, would be two clusters. */
  #judge(view: TenureView | null): void {
    if (view?.role !== "LEADER") return;
    const known = this.#leaderOfTerm.get(view.term) ?? view.node_id;
    this.#leaderOfTerm.set(view.term, known);
    if (known !== view.node_id) this.violations.push(`${known} and ${view.node_id} lead in term ${view.term}`);
    const voters = view.members.filter(({ kind }) => kind === "voter").map(({ node_id }) => node_id);
    if (new Set(voters).size < voters.length) this.violations.push(`a node votes twice: ${voters.join(", ")}`);
  }

  async #found(nodes: number, founders: number): Promise<void> {
    const ids = Array.from({ length: nodes }, (_, at) => `n${at + 1}`);
    for (const id of ids) await this.cluster.make(id);
    for (const from of ids) {
      const peers: Record<string, string> = {};
      for (const to of this.#without([from])) {
        const port = Number(this.cluster.node(to).peerAddress.split(":").at(-1));
        const link = await startProxy({ host: HOST, port });
        this.#links.set(`${from} ${to}`, link);
        peers[to] = `${HOST}:${link.port}`;
      }
      this.cluster.node(from).configure({ peers, bootstrap: { expect: ids.slice(0, founders) } });
    }
    const first = ids.slice(0, founders);
    first.forEach((id, at) => this.cluster.node(id).start(at === 0 ? ["--bootstrap"] : []));
    await this.agreed(first, FOUNDING_MS_MAX);
    await waitFor("all founders to vote", async () =>
      (await this.members("n1")).every((member) => member.endsWith(" voter")),
    );
    for (const id of ids.slice(founders)) this.cluster.node(id).start();
  }

  #without(some: readonly string[]): string[] {
    return this.nodes.map(({ id }) => id).filter((id) => !some.includes(id));
  }

  #between(some: readonly string[], others: readonly string[]): TcpProxy[] {
    const pairs = some.flatMap((one) => others.flatMap((other) => [`${one} ${other}`, `${other} ${one}`]));
    return pairs.flatMap((pair) => this.#links.get(pair) ?? []);
  }
}

function membersIn(view: TenureView | null): string[] {
  return (view?.members ?? []).map(({ node_id, kind }) => `${node_id} ${kind}`).toSorted();
}

/** Who leads in which term, and who the members are, with their disks. */
function shown(view: TenureView | null): string {
  const members = view?.members.map(({ node_id, incarnation, kind }) => [node_id, incarnation, kind]).toSorted();
  return JSON.stringify([view?.leader?.node_id, view?.term, members]);
}
