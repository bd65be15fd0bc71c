// A client of the test store: finds the leader, follows it, and says honestly what it knows.
//
//   asked ─▶ sent ─▶ committed | value                                a definite answer
//              ├───▶ refused ─▶ asked again, where the hint points    nothing was written, so that is safe (trap 65)
//              └───▶ unknown: the connection broke, the time was over, or the node could not know (trap 66)
//
// One connection to each node, with any number of requests under way. Requests that are made in one turn of the event loop
// leave in one write. Nodes tell who leads as soon as they know: what still waits for another node then gets a moment more
// and is unknown. It never repeats an unknown write: that is the caller's decision.

import { connect, type Socket } from "node:net";
import { encodeCommand } from "./machine.ts";
import {
  type Answer,
  decodeAnswer,
  encodeRequest,
  FrameReader,
  FrameWriter,
  NOTICE_ID,
  type RequestKind,
} from "./protocol.ts";

export type Written =
  | { readonly outcome: "committed"; readonly index: number; readonly done: boolean; readonly node: string }
  /** Nothing was written. */
  | { readonly outcome: "refused"; readonly code: string }
  | { readonly outcome: "unknown" };

export type Got =
  | { readonly outcome: "value"; readonly value: string | null; readonly index: number; readonly node: string }
  | { readonly outcome: "refused"; readonly code: string };

export interface KvClientOptions {
  /** Ports on 127.0.0.1 by node id. May change while the client lives: it is read at each attempt. */
  readonly ports: Readonly<Record<string, number>>;
  /** How long one call may take, attempts at other nodes included. */
  readonly timeoutMs?: number | undefined;
  /** Between attempts while nobody is known to lead, unless a node tells who does. */
  readonly retryMs?: number | undefined;
  /** A write that was refused so often is given up; without it, only when its time is over. */
  readonly refusalsMax?: number | undefined;
}

const TIMEOUT_MS = 5_000;
const RETRY_MS = 2;
const CONNECT_TIMEOUT_MS = 250;
const HOST = "127.0.0.1";
const WATCH_MS = 50;
/** How long a node may still answer after it was said that another leads. */
const DEPOSED_MS = 15;

/** What one attempt came to. `unsent`: it certainly never left. */
type Attempt = Exclude<Answer, { kind: "leader" }> | { readonly kind: "unsent" };

export class KvClient {
  readonly #ports: Readonly<Record<string, number>>;
  readonly #timeoutMs: number;
  readonly #retryMs: number;
  readonly #refusalsMax: number;
  readonly #links = new Map<string, Link>();
  readonly #watch: NodeJS.Timeout;
  #leader: string | null = null;
  #term = 0;
  #turn = 0;
  #isClosed = false;
  /** Who waits to be notified of a leader. */
  #waiting: (() => void)[] = [];

  constructor(options: KvClientOptions) {
    this.#ports = options.ports;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#retryMs = options.retryMs ?? RETRY_MS;
    this.#refusalsMax = options.refusalsMax ?? Infinity;
    this.#watch = setInterval(() => this.#connectAll(), WATCH_MS);
    this.#watch.unref();
    this.#connectAll();
  }

  /** Who leads, as far as this client has heard. */
  get leader(): string | null {
    return this.#leader;
  }

  put(key: string, value: string | Uint8Array, timeoutMs = this.#timeoutMs): Promise<Written> {
    return this.write("put", encodeCommand({ kind: "put", key, value: bytesOf(value) }), timeoutMs);
  }

  cas(key: string, expected: string, value: string, timeoutMs = this.#timeoutMs): Promise<Written> {
    const body = encodeCommand({ kind: "cas", key, expected: bytesOf(expected), value: bytesOf(value) });
    return this.write("cas", body, timeoutMs);
  }

  /** At `node`, or at the leader. Every node answers linearizable reads. A read that was lost is simply asked again. */
  async get(key: string, node: string | null = null, timeoutMs = this.#timeoutMs): Promise<Got> {
    const body = bytesOf(key);
    const untilMs = performance.now() + timeoutMs;
    let code = "ERR_NO_LEADER";
    while (!this.#isClosed && performance.now() < untilMs) {
      const at = node ?? this.#guess();
      const answer = await this.#attempt(at, "get", body, untilMs);
      if (answer.kind === "value") {
        if (node === null) this.#leader = at;
        const value = answer.value === null ? null : Buffer.from(answer.value).toString();
        return { outcome: "value", value, index: answer.index, node: at };
      }
      if (answer.kind === "refused") code = answer.code;
      await this.#look(at, answer);
    }
    return { outcome: "refused", code };
  }

  /** An encoded command: benchmarks prepare theirs beforehand. */
  async write(kind: "put" | "cas", body: Uint8Array, timeoutMs = this.#timeoutMs): Promise<Written> {
    const untilMs = performance.now() + timeoutMs;
    let code = "ERR_NO_LEADER";
    let refusals = 0;
    while (!this.#isClosed && refusals < this.#refusalsMax && performance.now() < untilMs) {
      const at = this.#guess();
      const answer = await this.#attempt(at, kind, body, untilMs);
      if (answer.kind === "committed") {
        this.#leader = at;
        return { outcome: "committed", index: answer.index, done: answer.done, node: at };
      }
      if (answer.kind === "unknown") {
        this.#forget(at);
        return { outcome: "unknown" };
      }
      if (answer.kind === "refused") {
        code = answer.code;
        refusals++;
      }
      await this.#look(at, answer);
    }
    return { outcome: "refused", code };
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#watch);
    for (const link of this.#links.values()) link.destroy();
  }

  // ---- whom to ask ---------------------------------------------------------------------------------

  #guess(): string {
    const nodes = Object.keys(this.#ports);
    if (this.#leader !== null && nodes.includes(this.#leader)) return this.#leader;
    return nodes[this.#turn % nodes.length]!;
  }

  #forget(node: string): void {
    if (this.#leader === node) this.#leader = null;
    this.#turn++;
  }

  /** After a definite refusal: the hint, or the next one after a moment. */
  async #look(node: string, answer: Attempt): Promise<void> {
    const hint = answer.kind === "refused" ? answer.leader : "";
    // Another request may have found the leader meanwhile.
    if (this.#leader !== null && this.#leader !== node) return;
    if (hint !== "" && hint !== node && hint in this.#ports) {
      this.#leader = hint;
      return;
    }
    this.#forget(node);
    await this.#news();
  }

  /** Until a node tells who leads, and at most so long as one waits between attempts. */
  #news(): Promise<void> {
    return new Promise((resolve) => {
      const late = setTimeout(resolve, this.#retryMs);
      this.#waiting.push(() => {
        clearTimeout(late);
        resolve();
      });
    });
  }

  #attempt(node: string, kind: RequestKind, body: Uint8Array, untilMs: number): Promise<Attempt> {
    return this.#linkTo(node)?.ask(kind, body, untilMs) ?? Promise.resolve({ kind: "unsent" });
  }

  #linkTo(node: string): Link | null {
    const port = this.#ports[node];
    const link = this.#links.get(node);
    if (port === link?.port && link !== undefined && !link.isOver) return link;
    link?.destroy();
    this.#links.delete(node);
    if (port === undefined) return null;
    const fresh = new Link(port, (term, leader) => this.#told(term, leader));
    this.#links.set(node, fresh);
    return fresh;
  }

  #connectAll(): void {
    for (const node of new Set([...Object.keys(this.#ports), ...this.#links.keys()])) this.#linkTo(node);
  }

  #told(term: number, leader: string): void {
    if (term < this.#term || !(leader in this.#ports)) return;
    if (term > this.#term) {
      for (const [node, link] of this.#links) if (node !== leader) link.hurry(DEPOSED_MS);
    }
    this.#term = term;
    this.#leader = leader;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) go();
  }
}

function bytesOf(value: string | Uint8Array): Uint8Array {
  return typeof value === "string" ? Buffer.from(value) : value;
}

interface Asked {
  readonly settle: (attempt: Attempt) => void;
  untilMs: number;
}

/** One connection. `isOver` is for ever: the next attempt makes another. */
class Link {
  readonly port: number;
  readonly #socket: Socket;
  readonly #out = new FrameWriter();
  readonly #asked = new Map<number, Asked>();
  readonly #watch: NodeJS.Timeout;
  #state: "connecting" | "open" | "over" = "connecting";
  #isFlushScheduled = false;
  #nextId = 0;

  constructor(port: number, told: (term: number, leader: string) => void) {
    this.port = port;
    this.#socket = connect({ host: HOST, port, noDelay: true });
    const slow = setTimeout(() => this.destroy(), CONNECT_TIMEOUT_MS);
    const reader = new FrameReader();
    this.#socket.once("connect", () => {
      clearTimeout(slow);
      if (this.#state !== "connecting") return;
      this.#state = "open";
      this.#flush();
    });
    this.#socket.on("error", () => undefined);
    this.#socket.once("close", () => {
      clearTimeout(slow);
      this.destroy();
    });
    this.#socket.on("data", (chunk: Buffer) => {
      try {
        reader.read(chunk, (frame) => {
          const answer = decodeAnswer(frame);
          if (answer.kind === "leader") return told(answer.term, answer.leader);
          const asked = this.#asked.get(frame.id);
          this.#asked.delete(frame.id);
          asked?.settle(answer);
        });
      } catch {
        this.destroy();
      }
    });
    this.#watch = setInterval(() => this.#giveUpLate(), WATCH_MS);
    this.#watch.unref();
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  ask(kind: RequestKind, body: Uint8Array, untilMs: number): Promise<Attempt> {
    if (this.#state === "over") return Promise.resolve({ kind: "unsent" });
    const id = this.#nextId;
    this.#nextId = (id + 1) % NOTICE_ID;
    encodeRequest(this.#out, id, kind, body);
    if (this.#state === "open" && !this.#isFlushScheduled) {
      this.#isFlushScheduled = true;
      process.nextTick(() => this.#flush());
    }
    return new Promise((settle) => this.#asked.set(id, { settle, untilMs }));
  }

  /** What still waits is late from then on. */
  hurry(graceMs: number): void {
    if (this.#asked.size === 0) return;
    const untilMs = performance.now() + graceMs;
    for (const asked of this.#asked.values()) asked.untilMs = Math.min(asked.untilMs, untilMs);
    setTimeout(() => this.#giveUpLate(), graceMs + 1);
  }

  destroy(): void {
    // Before the connection stood nothing left; afterwards anything may have.
    const kind = this.#state === "connecting" ? "unsent" : "unknown";
    this.#state = "over";
    clearInterval(this.#watch);
    this.#socket.destroy();
    const asked = [...this.#asked.values()];
    this.#asked.clear();
    for (const { settle } of asked) settle({ kind });
  }

  #flush(): void {
    this.#isFlushScheduled = false;
    if (this.#state === "open" && !this.#out.isEmpty) this.#socket.write(this.#out.take());
  }

  /** One that is late says that the others on this connection will be: it is given up with all of them. */
  #giveUpLate(): void {
    const nowMs = performance.now();
    for (const { untilMs } of this.#asked.values()) if (nowMs >= untilMs) return this.destroy();
  }
}
