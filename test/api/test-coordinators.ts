// Coordinators after a real API with TLS: the production loop of a node, its ledger in memory, and callers with certificates.

import { request } from "node:https";
import { Coordinator } from "../../src/controller/coordinators/coordinator.ts";
import { type PeerKey, peerKey } from "../../src/core/kit/ids.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import { EMPTY_LEDGER, type Ledger, majorityOf, positionOf } from "../../src/core/lease/index.ts";
import { parseSpiffeId } from "../../src/core/kit/spiffe.ts";
import { createCa, issue, type KeyPair } from "../../src/drivers/pki/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import type {
  AnswerTo,
  CoordinatorCalls,
  CoordinatorRequest,
  Coordinators,
  CoordinatorView,
  LeaveResult,
  MembersView,
  RegistryView,
} from "../../src/ports/coordinators.ts";
import { startApi, type TestApi } from "./test-api.ts";

export const BACKEND = "b".repeat(64);
export const CLUSTER = "c-1";

interface NodeOptions {
  readonly id?: string;
  readonly endpoint?: string;
  readonly seeds?: readonly string[];
  readonly ledger?: Ledger;
  readonly calls?: CoordinatorCalls;
  /** It registers itself with that. */
  readonly backendHash?: string;
}

/** Nobody answers. What was asked of whom is kept. */
export class SilentCalls implements CoordinatorCalls {
  readonly asked: { readonly endpoint: string; readonly request: CoordinatorRequest }[] = [];

  async call(endpoint: string, asked: CoordinatorRequest): Promise<null> {
    this.asked.push({ endpoint, request: asked });
    return null;
  }
}

/** Not durable: the files are tested where they are. */
export class TestCoordinators implements Coordinators {
  readonly self: PeerKey;
  readonly endpoint: string;
  readonly coordinator: Coordinator;
  readonly #seeds: readonly string[];
  #hasLeft = false;

  constructor(options: NodeOptions) {
    const { id = "n1", endpoint = `https://${id}:1`, seeds = [endpoint], ledger, calls, backendHash } = options;
    this.self = peerKey(id, "a1");
    this.endpoint = endpoint;
    this.#seeds = seeds;
    this.coordinator = new Coordinator({
      self: this.self,
      endpoint,
      seeds,
      backendHash,
      ledger: ledger ?? EMPTY_LEDGER,
      file: { write: async () => {} },
      calls: calls ?? new SilentCalls(),
      clock: systemClock,
      random: seededRandom(id),
      work: { begins: () => {}, ends: async () => {} },
      newClusterId: () => CLUSTER,
      news: () => {},
      fatal: (error) => {
        throw error;
      },
    });
    this.coordinator.start();
  }

  /** Of the ledger alone: no lease in it ever ends. */
  view(): CoordinatorView {
    const { clusterId, term, roster, grant } = this.coordinator.ledger;
    const endpoint = roster?.voters.find(({ peer }) => peer === grant?.leader)?.endpoint ?? null;
    const leader = grant === null || grant.released ? null : { peer: grant.leader, endpoint, term: grant.term };
    return {
      self: this.self,
      clusterId,
      term,
      roster: roster === null ? null : positionOf(roster),
      isLeaving: false,
      leader,
      leaderExpiresAtMs: leader === null ? null : systemClock.wallMs() + 1_500.5,
      backendHash: BACKEND,
      actsInTerm: this.coordinator.leads,
      waitsFor: clusterId === null ? this.#seeds.filter((seed) => seed !== this.endpoint) : [],
      hasLeft: this.#hasLeft,
    };
  }

  members(): MembersView {
    const { members, ledger, leads } = this.coordinator;
    const wallMs = systemClock.wallMs();
    const leases = members.active(wallMs);
    const voters = ledger.roster?.voters ?? [];
    return {
      endpoints: members.endpoints(wallMs),
      leases,
      updatedAtMs: Math.max(0, ...leases.map(({ updatedAtMs }) => updatedAtMs)),
      voters: voters.map((voter) => ({
        ...voter,
        state: leads !== null && voter.peer === this.self ? "leads" : "unknown",
      })),
      quorum: voters.length === 0 ? 0 : majorityOf(voters.length),
      roster: ledger.roster === null ? null : positionOf(ledger.roster),
    };
  }

  registry(): RegistryView {
    const { shown } = this.coordinator.ledger;
    return { entries: shown?.registry ?? [], updatedAtMs: shown === null ? 0 : 1_700_000_000_999 };
  }

  answer<R extends CoordinatorRequest>(caller: string, asked: R): Promise<AnswerTo<R>> {
    return this.coordinator.answer(caller, asked);
  }

  async leave(): Promise<LeaveResult> {
    const result = await this.coordinator.leave();
    this.#hasLeft = result.kind === "left";
    return result;
  }

  async rejoin(): Promise<void> {
    this.#hasLeft = false;
    await this.coordinator.rejoin();
  }
}

/** A trust domain with its API servers and their callers. */
export class TestIsland {
  readonly ca: KeyPair;
  readonly #pairs = new Map<string, Promise<KeyPair>>();

  private constructor(ca: KeyPair) {
    this.ca = ca;
  }

  static async make(): Promise<TestIsland> {
    return new TestIsland(await createCa({ trustDomain: "tenure", nowMs: Date.now() }));
  }

  /** `kind/name`. */
  pair(name: string): Promise<KeyPair> {
    const known = this.#pairs.get(name);
    if (known !== undefined) return known;
    const identity = parseSpiffeId(`spiffe://tenure/${name}`)!;
    const made = issue({ ca: this.ca, identity, hosts: ["127.0.0.1"], nowMs: Date.now() });
    this.#pairs.set(name, made);
    return made;
  }

  async start(coordinators?: Coordinators, more: Parameters<typeof startApi>[0] = {}): Promise<TestApi> {
    const server = await this.pair("server/n1");
    return startApi({ tls: { ...server, clientCa: this.ca.cert }, coordinators, ...more });
  }

  /** `as`: `kind/name` of the caller's certificate; null: none. A text is sent as it is. */
  async ask(port: number, { as, method = "GET", path, body, headers = {} }: Asked): Promise<Got> {
    const pair = as === null ? {} : await this.pair(as);
    const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const type: Record<string, string> = text === undefined ? {} : { "content-type": "application/json" };
      const sent = request(
        {
          port,
          host: "127.0.0.1",
          path,
          method,
          ca: this.ca.cert,
          agent: false,
          ...pair,
          headers: { ...type, ...headers },
        },
        (answer) => {
          let said = "";
          answer.on("data", (chunk: Buffer) => (said += chunk.toString()));
          answer.on("end", () => resolve({ status: answer.statusCode ?? 0, json: JSON.parse(said) as Got["json"] }));
        },
      );
      sent.on("error", reject).end(text);
    });
  }
}

export interface Asked {
  readonly as: string | null;
  readonly method?: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Got {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}
