// Whether a leader and a worker were ever at once on one node, by the stamps that both leave in the node's log: of the one
// clock that all processes of a machine share.
//
//   worker   agent-started ─────────▶ agent-gone      (or the end of the whole node)
//   gate     gate-open ─────────────▶ gate-closed     (or the end of the controller, or of the whole node)

interface Span {
  readonly from: bigint;
  to: bigint | null;
}

export interface Overlap {
  readonly node: string;
  readonly gate: string;
  readonly worker: string;
}

export class NodeStamps {
  readonly #node: string;
  readonly #gates: Span[] = [];
  readonly #workers: Span[] = [];
  readonly #strange: string[] = [];
  #rest = "";

  constructor(node: string) {
    this.#node = node;
  }

  get gates(): number {
    return this.#gates.length;
  }

  /** Lines that are none of a log: a stamp may have been among them. */
  get strange(): readonly string[] {
    return this.#strange;
  }

  get workers(): number {
    return this.#workers.length;
  }

  /** Text of its log, in order, cut anywhere. */
  take(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line);
  }

  /** Nothing of the node lives any more, at this moment at the latest. */
  ended(atNs: bigint): void {
    this.#rest = "";
    close(this.#gates, atNs);
    close(this.#workers, atNs);
  }

  overlaps(): Overlap[] {
    return this.#gates.flatMap((gate) =>
      this.#workers
        .filter((worker) => isBefore(gate.from, worker.to) && isBefore(worker.from, gate.to))
        .map((worker) => ({ node: this.#node, gate: shown(gate), worker: shown(worker) })),
    );
  }

  /** Whether its gate was open from before the one moment until after the other. */
  isOpenAll(fromNs: bigint, toNs: bigint): boolean {
    return this.#gates.some((gate) => gate.from < fromNs && (gate.to === null || gate.to > toNs));
  }

  #line(line: string): void {
    if (!line.startsWith("{")) {
      if (line !== "") this.#strange.push(line);
      return;
    }
    const { event, at_ns: stamp } = JSON.parse(line) as { readonly event?: string; readonly at_ns?: string };
    if (event === undefined || stamp === undefined) return;
    const atNs = BigInt(stamp);
    if (event === "agent-started") this.#workers.push({ from: atNs, to: null });
    if (event === "agent-gone") close(this.#workers, atNs);
    if (event === "gate-open") this.#gates.push({ from: atNs, to: null });
    if (event === "gate-closed" || event === "controller-ended") close(this.#gates, atNs);
  }
}

function close(spans: readonly Span[], atNs: bigint): void {
  const last = spans.at(-1);
  if (last !== undefined) last.to ??= atNs;
}

function isBefore(from: bigint, to: bigint | null): boolean {
  return to === null || from < to;
}

function shown({ from, to }: Span): string {
  return `${from}–${to ?? ""}`;
}
