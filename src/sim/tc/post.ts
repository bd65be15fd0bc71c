// Calls between simulated coordinators: frames with numbers on the kernel's network, which loses, repeats and reorders them. A repeated request is
// answered again, as one that a client sends twice would be; only changes of the registry are taken once, as over one connection.

import { nodeIdOf, type PeerKey, peerKey } from "../../core/kit/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Answered, AnswerTo, CoordinatorCalls, CoordinatorRequest } from "../../ports/coordinators.ts";
import type { Wire } from "../../ports/peers/wire.ts";

type Frame =
  | { readonly kind: "request"; readonly id: string; readonly request: CoordinatorRequest }
  | { readonly kind: "answer"; readonly id: string; readonly answer: AnswerTo<CoordinatorRequest> };

export interface PostOptions {
  readonly wire: Wire;
  readonly clock: Clock;
  /** In this life. */
  readonly name: string;
  /** Who answers at an address; undefined: nobody. */
  at(endpoint: string): string | undefined;
  answer(caller: string, request: CoordinatorRequest): Promise<AnswerTo<CoordinatorRequest>>;
  /** Before it leaves: what is really sent. */
  sending(to: string, request: CoordinatorRequest): CoordinatorRequest;
  /** A frame arrived: what it says. */
  heard(from: PeerKey, body: CoordinatorRequest | AnswerTo<CoordinatorRequest>): void;
  answering(to: string, request: CoordinatorRequest, answer: AnswerTo<CoordinatorRequest>, arrivedMs: number): void;
}

export class Post implements CoordinatorCalls {
  readonly #options: PostOptions;
  readonly #waiting = new Map<string, (answered: Answered<CoordinatorRequest> | null) => void>();
  readonly #taken = new Set<string>();
  #calls = 0;

  constructor(options: PostOptions) {
    this.#options = options;
  }

  start(): void {
    this.#options.wire.start({
      message: (from, bytes) => this.#take(from, JSON.parse(new TextDecoder().decode(bytes)) as Frame),
      peerSeen: () => {},
      peerGone: () => {},
    });
  }

  call<R extends CoordinatorRequest>(endpoint: string, request: R, withinMs: number): Promise<Answered<R> | null> {
    const { clock, name } = this.#options;
    const id = `${name}#${++this.#calls}`;
    return new Promise((resolve) => {
      const end = (answered: Answered<CoordinatorRequest> | null): void => {
        timer.cancel();
        this.#waiting.delete(id);
        resolve(answered as Answered<R> | null);
      };
      const timer = clock.setTimer(clock.monotonicMs() + withinMs, () => end(null));
      this.#waiting.set(id, end);
      const to = this.#options.at(endpoint);
      const sent = this.#options.sending(to ?? endpoint, request);
      if (to !== undefined) this.#send(to, { kind: "request", id, request: sent });
    });
  }

  /** To a node, without waiting for an answer, as somebody with this node's certificate could. */
  send(to: string, request: CoordinatorRequest): void {
    this.#send(to, { kind: "request", id: `${this.#options.name}#${++this.#calls}`, request });
  }

  #take(from: PeerKey, frame: Frame): void {
    const caller = nodeIdOf(from);
    if (frame.kind === "answer") {
      // One that comes too late is heard by nobody.
      const waiting = this.#waiting.get(frame.id);
      if (waiting === undefined) return;
      this.#options.heard(from, frame.answer);
      waiting({ from: caller, answer: frame.answer });
      return;
    }
    const { id, request } = frame;
    if (request.kind === "registry" && this.#taken.has(id)) return;
    if (request.kind === "registry") this.#taken.add(id);
    const arrivedMs = this.#options.clock.monotonicMs();
    this.#options.heard(from, request);
    void this.#options.answer(caller, request).then((answer) => {
      this.#options.answering(caller, request, answer, arrivedMs);
      this.#send(caller, { kind: "answer", id, answer });
    });
  }

  #send(to: string, frame: Frame): void {
    // The network delivers to a node id, whichever disk it has by now.
    this.#options.wire.send(peerKey(to, "0"), new TextEncoder().encode(JSON.stringify(frame)));
  }
}
