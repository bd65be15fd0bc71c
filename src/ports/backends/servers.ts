// The way to Tenure's own servers: their JSON API, one question to one node at a time. Sockets, TLS, the API key and the
// limits of what is read belong to the driver; which node is asked, and what an answer means, to the elector.

export interface ServersWire {
  /**
   * One request to one node, sent at most once (trap 65); no redirect is followed. Rejects with a TenureError when no
   * answer came, or none that is JSON: what the request did is unknown then, unless the error says `unsent: true`; an answer that
   * is longer than `bytesMax` says `tooLong: true`. Carries the
   * API key: whoever calls it asks nobody but known members (trap 64).
   */
  ask(url: string, question: ServersQuestion): Promise<ServersAnswer>;
  /** Destroys every socket; what is under way rejects. */
  close(): void;
}

export interface ServersQuestion {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With its query. */
  readonly path: string;
  readonly body: object | null;
  /** For the whole answer; of a stream, until it begins. */
  readonly timeoutMs: number;
  /** Given: an answer with status 200 is a stream, which fails when nothing comes for so long while its reader waits. */
  readonly silenceMs?: number | undefined;
  /** A longer answer is refused, and not read to its end. */
  readonly bytesMax: number;
  /** Aborting destroys the socket and rejects. */
  readonly signal: AbortSignal;
}

/** Of whatever status. */
export interface ServersAnswer {
  readonly status: number;
  /** Of a stream: empty. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Of a stream: its text as it comes. Whoever stops reading it ends it. */
  readonly pieces?: AsyncIterable<string> | undefined;
  /** The cluster that the node says it belongs to; null where it does not say. */
  readonly clusterId: string | null;
  /** What that cluster was recovered or restored from, the newest first; absent: from none; null: the node does not know yet. */
  readonly ancestors?: readonly string[] | null | undefined;
  /** It was restored paused, and not resumed yet. */
  readonly isPaused?: boolean | undefined;
}
