// Transactions over real islands, as a client asks for them with a certificate of the kind `tc`, and what islands show of them.

import { randomUUIDv7 } from "node:crypto";
import type { TenureAnswer } from "../servers/tenure-node.ts";
import { PATIENT_MS, type TestCertificate, type TestIsland, type TestIslands } from "./test-islands.ts";

export type TestOperation = Readonly<Record<string, unknown>> & { readonly op: string };

export interface TestTxn {
  readonly txn_id?: string;
  readonly home?: string;
  readonly timeout_ms?: number;
  readonly require?: readonly { readonly backend_hash: string; readonly scope: string; readonly epoch: number }[];
  /** By island. */
  readonly at: Readonly<Record<string, readonly TestOperation[]>>;
}

/** Of the answer, or of the error. */
export interface TxnReply {
  readonly txn_id?: string;
  readonly state?: "committed" | "rolled_back";
  readonly tc_term?: number;
  readonly home?: string;
  readonly reason?: { readonly code: string; readonly message: string; readonly backend_hash: string | null } | null;
  readonly participants?: readonly {
    readonly backend_hash: string;
    readonly state: string;
    readonly results: readonly { readonly version?: number; readonly epoch?: number; readonly job_id?: string }[];
  }[];
  readonly error?: string;
  readonly message?: string;
  readonly leader_endpoint?: string;
}

export interface ShownValue {
  readonly name: string;
  readonly value: unknown;
  readonly version: number;
  readonly pending_txn?: string | null;
}

/** Of GET /v1/txn. */
export interface ShownTxn {
  readonly txn_id: string;
  readonly state: string;
}

export function put(name: string, value: unknown, ifVersion?: number): TestOperation {
  return { op: "value.put", name, value, ...(ifVersion === undefined ? {} : { if_version: ifVersion }) };
}

export class TestTransactions {
  readonly certificate: TestCertificate;
  /** By the id of each node: its island's. */
  readonly hashes: ReadonlyMap<string, string>;

  private constructor(certificate: TestCertificate, hashes: ReadonlyMap<string, string>) {
    this.certificate = certificate;
    this.hashes = hashes;
  }

  /** Of islands that are settled. */
  static async of(islands: TestIslands): Promise<TestTransactions> {
    const views = await islands.views();
    const hashes = new Map(views.map(({ self }) => [self.identity, self.backend_hash]));
    return new TestTransactions(await islands.issue("tc", "test"), hashes);
  }

  hash(island: TestIsland | string): string {
    return this.hashes.get(typeof island === "string" ? island : island.id)!;
  }

  /** As it is sent. */
  body({ txn_id = randomUUIDv7(), at, ...rest }: TestTxn): object {
    const participants = Object.entries(at).map(([id, operations]) => ({ backend_hash: this.hash(id), operations }));
    return { txn_id, ...rest, participants };
  }

  /** Asked of `island`, whichever leads. Rejects where it does not answer. */
  run(island: TestIsland, txn: TestTxn, limitMs = PATIENT_MS): Promise<TenureAnswer<TxnReply>> {
    return island.call<TxnReply>("/v1/txn", { body: this.body(txn), limitMs }, this.certificate);
  }

  /** Null: there is none. */
  async value(island: TestIsland, name: string): Promise<ShownValue | null> {
    const { status, body } = await island.call<ShownValue>(`/v1/values/${name}`, {}, this.certificate);
    if (status === 404) return null;
    if (status !== 200) throw new Error(`${island.id} answered with ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  /** By the id of the node: what it has of `name`; null: none. */
  async everywhere(islands: readonly TestIsland[], name: string): Promise<Readonly<Record<string, unknown>>> {
    const found = await Promise.all(islands.map(async (one) => [one.id, (await this.value(one, name))?.value ?? null]));
    return Object.fromEntries(found) as Readonly<Record<string, unknown>>;
  }

  /** Of all of them; an island that does not answer rejects. */
  async inDoubt(islands: readonly TestIsland[]): Promise<readonly ShownTxn[]> {
    const found = await Promise.all(
      islands.map(async (island) => {
        const answer = await island.call<{ readonly transactions: readonly ShownTxn[] }>(
          "/v1/txn?in_doubt=true",
          {},
          this.certificate,
        );
        if (answer.status !== 200) throw new Error(`${island.id}: ${answer.status} ${JSON.stringify(answer.body)}`);
        return answer.body.transactions;
      }),
    );
    return found.flat();
  }
}
