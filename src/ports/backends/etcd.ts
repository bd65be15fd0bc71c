// The way to etcd: its JSON gateway (`POST /v3/…`), as questions with one answer and as streams of messages. Which
// member is asked, sockets, TLS and the limits of what is read belong to the driver; meaning belongs to the elector.

export interface EtcdWire {
  /**
   * One request, sent at most once (trap 65). Rejects with a TenureError when no answer came or when it was no answer
   * of etcd: what the request did is unknown then, unless the error says `unsent: true`: it certainly never left. The
   * next request goes to the next endpoint.
   */
  call(path: string, body: object, options: EtcdCall): Promise<EtcdAnswer>;
  /**
   * A request whose answer is a stream of messages, each told as it comes. Resolves when the server ends it or refuses
   * it, rejects as `call` does; nothing is told after that, nor after the signal has aborted.
   */
  stream(path: string, body: object, options: EtcdCall, tell: (message: unknown) => void): Promise<EtcdStreamEnd>;
  /** Destroys every socket; what is under way rejects. */
  close(): void;
}

export interface EtcdCall {
  /** Of `auth/authenticate`, where etcd wants one. */
  readonly token: string | undefined;
  /** For the whole answer of a call; for the head and the first message of a stream. */
  readonly timeoutMs: number;
  /** Aborting destroys the socket and rejects. */
  readonly signal: AbortSignal;
}

export type EtcdAnswer = { readonly kind: "answer"; readonly body: unknown } | EtcdRefusal;
export type EtcdStreamEnd = { readonly kind: "ended" } | EtcdRefusal;

/** etcd's own word: it understood the request and did not do it. */
export interface EtcdRefusal {
  readonly kind: "refused";
  /** A status code of gRPC. */
  readonly code: number;
  readonly message: string;
}
