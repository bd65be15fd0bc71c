// The authority: a server that gives one scope to one session at a time, with a timeout on its own clock.
//
//   free ──ask──▶ held(epoch) ──release, end, timeout, force, restart──▶ free, or held(epoch + 1) by the first that waits
//
// Two flavours. "session", as Postgres: a session is a connection; its end frees the scope at once, a restart ends all
// of them, and a connection that is only half there is found out by the idle timeout. "lease", as etcd: a session is a
// lease, requests stand for themselves and may be lost, repeated and reordered, and a restart starts each lease anew.
// What outlives a restart is in `Durable`.
// Invariants: a scope has at most one hold; each grant has a larger epoch than all before; a session that ended is
// never granted anything; a write is accepted with the epoch in force alone.

import { assertNever } from "../../core/kit/assert.ts";
import { type PeerKey, nodeIdOf } from "../../core/kit/ids.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Leader } from "../../ports/elector.ts";
import type { Wire } from "../../ports/peers/wire.ts";
import { Line } from "./line.ts";
import { type Answer, decode, encode, type Frame, type Push, type Request } from "./messages.ts";

export type Flavour = "session" | "lease";
/** Why a hold ended. The first two are how a leader means it to end. */
export type HoldEnd = "released" | "ended" | "timeout" | "forced" | "restarted";

export interface ServerEvents {
  granted(epoch: number, session: string): void;
  holdEnded(epoch: number, how: HoldEnd): void;
  written(epoch: number, accepted: boolean): void;
}

interface Session {
  readonly name: string;
  readonly peer: PeerKey;
  readonly identity: string;
  idle: Timer | undefined;
}

interface Hold {
  readonly session: Session;
  readonly epoch: number;
  resignRequested: boolean;
}

/** What is on the server's disk. */
export class Durable {
  epoch = 0;
  hold: Hold | null = null;
}

export interface ServerOptions {
  readonly flavour: Flavour;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly wire: Wire;
  readonly durable: Durable;
  readonly events: ServerEvents;
}

export class Server {
  readonly #options: ServerOptions;
  readonly #durable: Durable;
  readonly #sessions = new Map<string, Session>();
  readonly #ended = new Set<string>();
  readonly #lines = new Map<string, { readonly line: Line; readonly peer: PeerKey }>();
  /** In the order of asking. */
  readonly #waiting = new Set<Session>();

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#durable = options.durable;
    const { hold } = this.#durable;
    if (hold === null) return;
    if (options.flavour === "session") this.#endHold("restarted");
    else this.#adopt(hold.session);
  }

  get holder(): Leader | null {
    const { hold } = this.#durable;
    return hold && { epoch: hold.epoch, identity: hold.session.identity, metadata: {} };
  }

  start(): void {
    this.#options.wire.start({
      message: (from, bytes) => this.#take(from, decode(bytes)),
      peerSeen: (peer) => this.#endOthersOf(peer),
      peerGone: (peer) => this.#endAll((session) => session.peer === peer),
    });
  }

  requestResign(): boolean {
    const { hold } = this.#durable;
    if (hold === null || hold.resignRequested) return false;
    hold.resignRequested = true;
    return true;
  }

  /** An operator takes the scope away. `told`: the session is ended too, and hears of it if it can be reached. */
  force(told: boolean): boolean {
    const { hold } = this.#durable;
    if (hold === null) return false;
    if (told) {
      this.#endSession(hold.session, "forced");
    } else {
      this.#endHold("forced");
      this.#grantNext();
    }
    return true;
  }

  #take(from: PeerKey, frame: Frame): void {
    if (frame.kind === "plain") {
      this.#serve(from, frame.body as Request, (answer) => this.#plain(from, answer));
      return;
    }
    const known = this.#lines.get(frame.line);
    if (known !== undefined) return known.line.take(frame);
    if (frame.kind === "data" && frame.sequence === 1 && !this.#ended.has(frame.line)) {
      this.#accept(from, frame.line).take(frame);
    } else if (frame.kind === "data") {
      this.#send(from, { kind: "reset", line: frame.line });
    }
  }

  #accept(peer: PeerKey, name: string): Line {
    const line = new Line({
      name,
      clock: this.#options.clock,
      send: (frame) => this.#send(peer, frame),
      received: (body) => this.#serve(peer, body as Request, (answer) => line.send(answer)),
      broken: () => this.#end(name),
      patienceMs: Infinity,
    });
    this.#lines.set(name, { line, peer });
    return line;
  }

  #serve(from: PeerKey, request: Request, answer: (answer: Answer) => void): void {
    switch (request.kind) {
      case "ask":
        return this.#ask(from, request, answer);
      case "beat": {
        const held = this.#heard(request.session, request.epoch);
        const resignRequested = this.#durable.hold?.resignRequested ?? false;
        return answer(
          held ? { kind: "beaten", id: request.id, resignRequested } : { kind: "not-held", id: request.id },
        );
      }
      case "release":
        if (this.#heard(request.session, request.epoch)) {
          this.#endHold("released");
          this.#grantNext();
        }
        return answer({ kind: "released", id: request.id });
      case "end":
        return this.#end(request.session);
      case "write": {
        const accepted = request.epoch === this.#durable.epoch;
        this.#options.events.written(request.epoch, accepted);
        return answer(accepted ? { kind: "written", id: request.id } : { kind: "stale", id: request.id });
      }
      case "leader":
        return answer({ kind: "leader", id: request.id, leader: this.holder });
      default:
        return assertNever(request, "Server.serve");
    }
  }

  #ask(from: PeerKey, request: Request & { kind: "ask" }, answer: (answer: Answer) => void): void {
    const { id, session: name, identity } = request;
    if (this.#ended.has(name)) return answer({ kind: "not-held", id });
    const session = this.#sessions.get(name) ?? this.#adopt({ name, peer: from, identity, idle: undefined });
    this.#extend(session);
    if (this.#durable.hold === null) this.#grant(session);
    const { hold } = this.#durable;
    if (hold?.session === session) return answer({ kind: "granted", id, epoch: hold.epoch });
    this.#waiting.add(session);
    answer({ kind: "wait", id });
  }

  /** Whether the session holds this epoch; hearing of it extends it. */
  #heard(name: string, epoch: number): boolean {
    const { hold } = this.#durable;
    const session = this.#sessions.get(name);
    if (session !== undefined) this.#extend(session);
    return session !== undefined && hold?.session === session && hold.epoch === epoch;
  }

  #adopt(session: Session): Session {
    this.#sessions.set(session.name, session);
    this.#extend(session);
    return session;
  }

  #extend(session: Session): void {
    const { clock, timeoutMs } = this.#options;
    session.idle?.cancel();
    session.idle = clock.setTimer(clock.monotonicMs() + timeoutMs, () => this.#endSession(session, "timeout"));
  }

  #grant(session: Session): void {
    this.#waiting.delete(session);
    const epoch = ++this.#durable.epoch;
    this.#durable.hold = { session, epoch, resignRequested: false };
    this.#options.events.granted(epoch, session.name);
  }

  #grantNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#grant(next);
    this.#extend(next);
    this.#tell(next, { kind: "woken", session: next.name });
  }

  #endHold(how: HoldEnd): void {
    const { hold } = this.#durable;
    if (hold === null) return;
    this.#durable.hold = null;
    this.#options.events.holdEnded(hold.epoch, how);
  }

  #end(name: string): void {
    this.#lines.delete(name);
    const session = this.#sessions.get(name);
    // An ask that was overtaken by its session's end must not be granted.
    if (session === undefined) this.#ended.add(name);
    else this.#endSession(session, "ended");
  }

  #endSession(session: Session, how: HoldEnd): void {
    session.idle?.cancel();
    this.#sessions.delete(session.name);
    this.#ended.add(session.name);
    this.#waiting.delete(session);
    const { hold } = this.#durable;
    if (hold?.session === session) {
      if (how !== "ended") this.#tell(session, { kind: "lost", session: session.name, epoch: hold.epoch });
      this.#endHold(how);
      this.#grantNext();
    }
    this.#lines.get(session.name)?.line.destroy();
    this.#lines.delete(session.name);
  }

  #endAll(which: (session: Session) => boolean): void {
    if (this.#options.flavour === "lease") return;
    for (const session of [...this.#sessions.values()].filter(which)) this.#endSession(session, "ended");
  }

  /** The node is back in another life: the connections of the earlier ones are gone with them. */
  #endOthersOf(peer: PeerKey): void {
    this.#endAll((session) => session.peer !== peer && nodeIdOf(session.peer) === nodeIdOf(peer));
  }

  #tell(session: Session, push: Push): void {
    const line = this.#lines.get(session.name)?.line;
    if (line !== undefined) line.send(push);
    else if (this.#options.flavour === "lease") this.#plain(session.peer, push);
  }

  #plain(to: PeerKey, body: Answer | Push): void {
    this.#send(to, { kind: "plain", body });
  }

  #send(to: PeerKey, frame: Frame): void {
    this.#options.wire.send(to, encode(frame));
  }
}
