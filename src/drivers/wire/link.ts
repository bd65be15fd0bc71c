// Our own connection to one peer, dialled again for ever (trap 60). Messages to that peer travel on it and on nothing else.
//
//   waiting ──timer, hello──▶ dialling ──acknowledged──▶ connected ──lost──▶ dialling, at once
//      ▲                          │                        │    ▲
//      └──────── failed ──────────┘                   old, and the other has closed it already
//                                                          ▼    │
//                                 any ──close──▶ closed   bridging ──not acknowledged──▶ lost
//
// A connection that has become old is renewed: another one is dialled while it stands, and takes its place when it is
// acknowledged. Nobody is a suspect for that. Whoever is refused then is out, and whoever can't be reached is tried later.
//
// `suspect` is the peer whose connection ended by reset or EOF (design D6). It is told as gone when a dial since then was
// refused and its own connection to us has ended too. A timeout, a TLS failure and our own closing make no suspect.

import { assert, assertNever } from "../../core/kit/assert.ts";
import { type PeerKey, peerKey } from "../../core/kit/ids.ts";
import { type Address, formatAddress } from "./address.ts";
import { BulkSender } from "./bulk-sender.ts";
import { type Connection, type ConnectionEnd, NOBODY, whyLost } from "./connection.ts";
import type { Dial, DialFailure } from "./dial.ts";
import { FRAME, type FrameFault, type FrameType } from "./frame.ts";
import { type Ack, decodeRefuse, PROTOCOL_OF_QUERIES } from "./handshake/hello.ts";
import {
  ANSWER_FRAME_BYTES_MAX,
  BACKOFF_MS_MAX,
  BACKOFF_MS_MIN,
  BREAKER_FAILURES,
  BREAKER_MS_MAX,
  CUT_REDIAL_MS,
  CUT_REDIALS_AT_ONCE_MAX,
  CUT_REDIALS_MAX,
  HANDSHAKE_BYTES_MAX,
  RENEW_RETRY_MS,
  SILENCE_MS_MAX,
  STOOD_MS,
} from "./limits.ts";
import { Questions } from "./questions.ts";
import type { LinkHost } from "./link-host.ts";
import { isAboutIdentity } from "./refusals.ts";

type State =
  | { readonly kind: "waiting"; readonly timer: NodeJS.Timeout | null }
  | { readonly kind: "dialling"; readonly dial: Dial }
  | { readonly kind: "connected"; readonly connection: Connection; readonly peer: PeerKey }
  | { readonly kind: "bridging"; readonly peer: PeerKey; readonly end: ConnectionEnd }
  | { readonly kind: "closed" };

const NOTHING = new Uint8Array(0);

export class Link {
  readonly nodeId: string;
  readonly address: Address;
  /** From the configuration; never forgotten, and preferred to what handshakes tell. */
  readonly isSeed: boolean;
  readonly bulk: BulkSender;
  /** On the connection that stands; null where the other knows of no questions. */
  questions: Questions | null = null;
  /** The disk that last answered there. */
  peer: PeerKey | null = null;
  apiUrl: string | null = null;
  /** Why, where it answers and one of the two does not accept who the other is. */
  refusal: string | null = null;
  /** What that disk and we agreed on. */
  protocol: number | null = null;
  /** Where it says that it listens; what others should dial. */
  advertised: string;
  readonly #host: LinkHost;
  #state: State = { kind: "waiting", timer: null };
  #trouble: string | null = "not dialled yet";
  #suspect: PeerKey | null = null;
  #lastIp: string | null = null;
  #unreachable = 0;
  /** Refusals in a row by one whose engine is not there yet. */
  #startings = 0;
  #failedHandshakes = 0;
  #cutRedials = 0;
  #connectedAtMs = 0;
  #renewAtMs = 0;
  #renewal: Dial | null = null;
  /** Connections in a row that did not stand for long. */
  #flaps = 0;
  /** Why we close a connection ourselves. */
  #complaint = "";

  constructor(host: LinkHost, nodeId: string, address: Address, isSeed: boolean) {
    this.#host = host;
    this.nodeId = nodeId;
    this.address = address;
    this.isSeed = isSeed;
    this.advertised = formatAddress(address);
    this.bulk = new BulkSender(host, { nodeId, address, lastIp: null });
  }

  get isConnected(): boolean {
    return this.#state.kind === "connected";
  }

  /** Whether something was heard on it within so long. */
  isFresh(withinMs: number): boolean {
    return this.#state.kind === "connected" && performance.now() - this.#state.connection.heardAtMs <= withinMs;
  }

  get queuedBytes(): number {
    return this.#state.kind === "connected" ? this.#state.connection.outbox.queuedBytes : 0;
  }

  get trouble(): string | null {
    return this.#trouble;
  }

  /** False: too much waits already. Only while connected. */
  send(type: FrameType, payload: Uint8Array): boolean {
    assert(this.#state.kind === "connected", "messages are sent on a link that stands", () => this.nodeId);
    return this.#state.connection.outbox.push(type, payload);
  }

  /** A sign of life came from that node: what is waited for may be over. Also how a link begins. */
  dialNow(): void {
    this.#failedHandshakes = 0;
    this.#unreachable = 0;
    this.#startings = 0;
    if (this.#state.kind === "waiting") this.#dial(null);
  }

  /** Its connection to us has ended. */
  inboundEnded(peer: PeerKey): void {
    if (this.#suspect === peer && this.#state.kind === "waiting") this.#dial(this.#lastIp);
  }

  tick(nowMs: number): void {
    if (this.#state.kind !== "connected") return;
    const { connection } = this.#state;
    this.questions?.tick(nowMs);
    if (nowMs - connection.heardAtMs <= SILENCE_MS_MAX) {
      connection.outbox.push(FRAME.ping, NOTHING);
      return;
    }
    this.#host.counts.silentConnections++;
    this.#complaint = `nothing was heard for ${SILENCE_MS_MAX} ms`;
    connection.close();
  }

  isOld(nowMs: number): boolean {
    return this.#state.kind === "connected" && this.#renewal === null && nowMs >= this.#renewAtMs;
  }

  get isRenewing(): boolean {
    return this.#renewal !== null;
  }

  renew(): void {
    assert(this.#state.kind === "connected" && this.#renewal === null, "what stands is renewed, once at a time");
    this.#host.counts.dials++;
    const target = { nodeId: this.nodeId, address: this.address, lastIp: this.#lastIp };
    this.#renewal = this.#host.dial(target, "peer", {
      connected: (connection, ack) => this.#renewed(connection, ack),
      failed: (failure) => this.#notRenewed(failure),
    });
  }

  /** Our own stop is not the other's silence. */
  forgive(nowMs: number): void {
    if (this.#state.kind === "connected") this.#state.connection.heardAtMs = nowMs;
  }

  close(): void {
    const state = this.#state;
    this.#state = { kind: "closed" };
    this.bulk.close();
    this.#renewal?.cancel();
    this.#renewal = null;
    this.questions?.end();
    switch (state.kind) {
      case "waiting":
        if (state.timer !== null) clearTimeout(state.timer);
        return;
      case "dialling":
        state.dial.cancel();
        return;
      case "connected":
        state.connection.close();
        this.#host.unlinked(this, state.peer);
        return;
      case "bridging":
        this.#host.unlinked(this, state.peer);
        return;
      case "closed":
        return;
      default:
        assertNever(state, "link");
    }
  }

  #dial(ip: string | null): void {
    if (this.#state.kind === "waiting" && this.#state.timer !== null) clearTimeout(this.#state.timer);
    this.#host.counts.dials++;
    const target = { nodeId: this.nodeId, address: this.address, lastIp: ip };
    const dial = this.#host.dial(target, "peer", {
      connected: (connection, ack) => this.#connected(connection, ack),
      failed: (failure) => this.#failed(failure),
    });
    this.#state = { kind: "dialling", dial };
  }

  #connected(connection: Connection, ack: Ack): void {
    const peer = peerKey(ack.nodeId, ack.incarnation);
    const isAskable = ack.protocol >= PROTOCOL_OF_QUERIES;
    const ask = (payload: Uint8Array): boolean => connection.outbox.push(FRAME.query, payload);
    this.questions?.end();
    this.questions = isAskable ? new Questions(ask, this.#host.counts) : null;
    const answers = isAskable ? { [FRAME.answer]: ANSWER_FRAME_BYTES_MAX } : {};
    connection.hand({
      phase: { [FRAME.pong]: 0, [FRAME.refuse]: HANDSHAKE_BYTES_MAX, ...answers },
      frame: (type, payload) => this.#frame(connection, type, payload),
      fault: (fault) => this.#fault(connection, fault),
      ended: (end) => this.#ended(end),
    });
    this.#lastIp = connection.socket.remoteAddress ?? null;
    this.bulk.aim({ nodeId: this.nodeId, address: this.address, lastIp: this.#lastIp }, peer);
    this.#suspect = null;
    this.#unreachable = 0;
    this.#startings = 0;
    this.#failedHandshakes = 0;
    this.#cutRedials = 0;
    this.peer = peer;
    this.apiUrl = ack.apiUrl;
    this.protocol = ack.protocol;
    this.advertised = ack.address;
    this.#state = { kind: "connected", connection, peer };
    this.#trouble = null;
    this.refusal = null;
    this.#connectedAtMs = performance.now();
    // With −25 %, so that connections that were made together do not end together.
    this.#renewAtMs = this.#connectedAtMs + this.#host.connectionAgeMs * this.#host.random.between(0.75, 1);
    this.#host.counts.handshakes++;
    this.#host.connected(this, ack);
  }

  #renewed(connection: Connection, ack: Ack): void {
    const state = this.#state;
    this.#renewal = null;
    assert(state.kind === "connected" || state.kind === "bridging", "what stood is renewed", () => state.kind);
    if (state.kind === "connected") {
      state.connection.hand(NOBODY);
      state.connection.close();
    }
    if (state.peer !== peerKey(ack.nodeId, ack.incarnation)) this.#host.unlinked(this, state.peer);
    this.#host.counts.renewedConnections++;
    this.#connected(connection, ack);
  }

  #notRenewed(failure: DialFailure): void {
    const state = this.#state;
    this.#renewal = null;
    this.#host.counts.failedDials++;
    if (state.kind === "bridging") {
      this.#lost(state.peer, state.end);
      return;
    }
    if (state.kind !== "connected") return;
    if (failure.kind === "unreachable" || failure.kind === "cut") {
      this.#renewAtMs = performance.now() + RENEW_RETRY_MS * this.#host.random.between(0.75, 1.25);
      return;
    }
    // It, or we, would not be let in today: the dial that follows tells everybody why.
    this.#complaint = `it was old, and no other was admitted: ${failure.message}`;
    state.connection.close();
  }

  #frame(connection: Connection, type: FrameType, payload: Uint8Array): void {
    if (type === FRAME.answer) {
      const fault = this.questions?.take(payload) ?? null;
      if (fault !== null) this.#fault(connection, fault);
    }
    if (type !== FRAME.refuse) return;
    // It does not like what we sent, and says why before it closes.
    const refusal = decodeRefuse(payload) ?? ({ reason: "other", message: "for no reason that can be read" } as const);
    this.#host.refusedBy(this.nodeId, refusal);
    this.#complaint = `it refused this node: ${refusal.message}`;
    connection.close();
  }

  #fault(connection: Connection, { reason, message }: FrameFault): void {
    this.#host.refusals.refuse(this.nodeId, reason, message);
    this.#complaint = message;
    connection.close();
  }

  #ended(end: ConnectionEnd): void {
    if (this.#state.kind !== "connected") return;
    const { peer } = this.#state;
    // Whoever accepts the new connection closes the old one, and we may see that first.
    if (this.#renewal !== null) this.#state = { kind: "bridging", peer, end };
    else this.#lost(peer, end);
  }

  #lost(peer: PeerKey, end: ConnectionEnd): void {
    this.#suspect = end.kind === "eof" || end.kind === "reset" ? peer : null;
    this.#state = { kind: "waiting", timer: null };
    this.questions?.end();
    this.#cutRedials = 0;
    this.#trouble = end.kind === "ours" ? this.#complaint : whyLost(end);
    this.#host.counts.lostConnections++;
    // Failover waits for this dial. One that is lost again and again must not turn into a storm of them.
    if (performance.now() - this.#connectedAtMs >= STOOD_MS) this.#flaps = 0;
    const flaps = this.#flaps++;
    if (flaps === 0) this.#dial(this.#lastIp);
    else this.#wait(backoff(flaps, BACKOFF_MS_MAX));
    this.#host.lost(this, peer, this.#trouble);
  }

  #failed(failure: DialFailure): void {
    this.#host.counts.failedDials++;
    this.#state = { kind: "waiting", timer: null };
    this.#trouble = failure.message;
    // One that refuses our certificate may also cut us off before it can say so.
    if (failure.kind !== "cut")
      this.refusal = "reason" in failure && isAboutIdentity(failure.reason) ? failure.message : null;
    switch (failure.kind) {
      case "unreachable":
        this.#failedHandshakes = 0;
        this.#startings = 0;
        // Nobody is there: what comes back is another life, and its first loss is a loss like any other.
        this.#flaps = 0;
        this.#wait(backoff(this.#unreachable++, BACKOFF_MS_MAX));
        if (failure.refused) this.#refused();
        return;
      case "cut":
        this.#cut();
        return;
      case "refused-by-us":
        this.#host.refusals.refuse(this.nodeId, failure.reason, failure.message);
        this.#handshakeFailed();
        return;
      case "refused-by-peer":
        this.#trouble = `it refused this node: ${failure.message}`;
        this.#host.refusedBy(this.nodeId, failure);
        // It may wait for hours, for room on its disk; once it has started, its own hello ends the pause.
        if (failure.reason === "starting") this.#wait(backoff(this.#startings++, BACKOFF_MS_MAX));
        else this.#handshakeFailed();
        return;
      default:
        assertNever(failure, "dial");
    }
  }

  /** The listener of a dying process is often the next thing that the kernel closes: a timer would cost more than it. */
  #cut(): void {
    const redials = this.#cutRedials++;
    if (this.#suspect === null || redials >= CUT_REDIALS_MAX) this.#handshakeFailed();
    else if (redials < CUT_REDIALS_AT_ONCE_MAX) this.#dial(this.#lastIp);
    else this.#again(CUT_REDIAL_MS, this.#lastIp);
  }

  #refused(): void {
    const suspect = this.#suspect;
    if (suspect === null || this.#host.hears(suspect)) return;
    this.#suspect = null;
    this.#host.gone(suspect);
  }

  /** It answers and then fails: somebody must repair it, and hammering helps nobody. */
  #handshakeFailed(): void {
    const failures = ++this.#failedHandshakes;
    if (failures < BREAKER_FAILURES) {
      this.#wait(backoff(failures, BACKOFF_MS_MAX));
      return;
    }
    this.#trouble = `${this.#trouble} (${failures} times in a row, so it is dialled less often)`;
    this.#wait(backoff(failures, BREAKER_MS_MAX));
  }

  /** With ±25 %, so that nodes that were cut off together do not come back together. */
  #wait(ms: number): void {
    this.#again(ms * this.#host.random.between(0.75, 1.25), null);
  }

  #again(ms: number, ip: string | null): void {
    this.#state = { kind: "waiting", timer: setTimeout(() => this.#dial(ip), ms) };
  }

  toString(): string {
    return `${this.nodeId} at ${formatAddress(this.address)}`;
  }
}

function backoff(failures: number, msMax: number): number {
  return Math.min(msMax, BACKOFF_MS_MIN * 2 ** Math.min(failures, 16));
}
