// One call to another coordinator, over whatever authenticates both.

export interface TcExchange {
  readonly endpoint: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: none. */
  readonly body: object | null;
  readonly withinMs: number;
}

export interface TcExchanged {
  /** The node id of the certificate that answered. */
  readonly from: string;
  readonly status: number;
  /** The answer's JSON, whatever that is. */
  readonly body: unknown;
}

export interface TcTransport {
  /** Null: no answer within the time, or none of a server of the trust domain. */
  exchange(exchange: TcExchange): Promise<TcExchanged | null>;
}
