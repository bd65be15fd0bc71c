// Transactions of Tenure: `POST /v1/txn` at the node that leads the coordinators, over a connection of each client's own, with a certificate of the kind `tc`.

import { randomUUIDv7 } from "node:crypto";
import { HttpConnection } from "./http-connection.ts";
import { CONTENT, NAMES, type Opened, type Side } from "./txn-sides.ts";

interface Outcome {
  readonly state: string;
  readonly participants: readonly { readonly state: string }[];
}

export class TenureSide implements Side {
  readonly #connections: readonly HttpConnection[];
  readonly #islands: readonly string[];

  constructor({ url, certificate, islands }: Extract<Opened, { name: "tenure" }>, clients: number) {
    this.#connections = Array.from({ length: clients }, () => new HttpConnection(url, certificate));
    this.#islands = islands;
  }

  async transact(client: number, n: number): Promise<"done" | "pending"> {
    const operations = [{ op: "value.put", name: `bench-${client}-${n % NAMES}`, value: CONTENT }];
    const participants = this.#islands.map((backend_hash) => ({ backend_hash, operations }));
    const body = JSON.stringify({ txn_id: randomUUIDv7(), participants });
    const outcome = await this.#connections[client]!.post<Outcome>("/v1/txn", body);
    if (outcome.state !== "committed") throw new Error(`not committed: ${JSON.stringify(outcome)}`);
    return outcome.participants.every(({ state }) => state === "applied") ? "done" : "pending";
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) connection.close();
  }
}
