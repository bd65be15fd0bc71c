// Everything that one instance says to the server and hears from it: the lines of its sessions, and messages that
// stand for themselves. One for each life of an instance.

import type { PeerKey } from "../../core/kit/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Wire } from "../../ports/peers/wire.ts";
import { Line } from "./line.ts";
import { type Answer, decode, encode, type Frame, type Push, type Request } from "./messages.ts";
import type { Flavour } from "./server.ts";

/** A session's way to the server. */
export interface Channel {
  send(request: Request): void;
  /** Nothing is heard after it. The server is told, if it can be reached at this moment. */
  destroy(): void;
}

export interface PostOptions {
  readonly flavour: Flavour;
  readonly clock: Clock;
  readonly wire: Wire;
  readonly server: PeerKey;
  /** How long a connection's data may stay unacknowledged before this end takes it for broken. */
  readonly patienceMs: number;
}

export class Post {
  readonly #options: PostOptions;
  readonly #lines = new Map<string, Line>();
  readonly #sessions = new Map<string, (body: Answer | Push) => void>();
  readonly #answers = new Map<number, (answer: Answer) => void>();
  #requests = 0;

  constructor(options: PostOptions) {
    this.#options = options;
  }

  start(): void {
    this.#options.wire.start({
      message: (_from, bytes) => this.#take(decode(bytes)),
      peerSeen: () => {},
      peerGone: () => {},
    });
  }

  nextId(): number {
    return ++this.#requests;
  }

  open(session: string, heard: (body: Answer | Push) => void, broken: () => void): Channel {
    return this.#options.flavour === "session" ? this.#line(session, heard, broken) : this.#lease(session, heard);
  }

  /** A request outside of any session; the answer may never come. */
  request(make: (id: number) => Request, answered: (answer: Answer) => void): () => void {
    const id = this.nextId();
    this.#answers.set(id, answered);
    this.#send({ kind: "plain", body: make(id) });
    return () => this.#answers.delete(id);
  }

  #line(session: string, heard: (body: Answer | Push) => void, broken: () => void): Channel {
    const line = new Line({
      name: session,
      clock: this.#options.clock,
      send: (frame) => this.#send(frame),
      received: (body) => heard(body as Answer | Push),
      broken: () => {
        this.#lines.delete(session);
        broken();
      },
      patienceMs: this.#options.patienceMs,
    });
    this.#lines.set(session, line);
    return {
      send: (request) => line.send(request),
      destroy: () => {
        this.#lines.delete(session);
        line.destroy();
      },
    };
  }

  #lease(session: string, heard: (body: Answer | Push) => void): Channel {
    this.#sessions.set(session, heard);
    return {
      send: (request) => {
        if ("id" in request) this.#answers.set(request.id, heard);
        this.#send({ kind: "plain", body: request });
      },
      destroy: () => {
        this.#sessions.delete(session);
        this.#send({ kind: "plain", body: { kind: "end", session } });
      },
    };
  }

  #take(frame: Frame): void {
    if (frame.kind !== "plain") {
      const line = this.#lines.get(frame.line);
      if (line !== undefined) line.take(frame);
      else if (frame.kind === "data") this.#send({ kind: "reset", line: frame.line });
      return;
    }
    const body = frame.body as Answer | Push;
    // Answers come twice where the network repeats them: whoever asked decides what that means.
    if ("id" in body) this.#answers.get(body.id)?.(body);
    else this.#sessions.get(body.session)?.(body);
  }

  #send(frame: Frame): void {
    this.#options.wire.send(this.#options.server, encode(frame));
  }
}
