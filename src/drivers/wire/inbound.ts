// A connection that a peer dialled: what it sends us comes in here, and nothing but answers to its pings and questions goes out.
//
//   greeting ──hello, accepted──▶ peer | bulk ──▶ ended
//      │ └──hello that asks──▶ answered, ended
//      └── late, unreadable, refused ──▶ told why, ended

import { assertNever } from "../../core/kit/assert.ts";
import { type PeerKey, peerKey } from "../../core/kit/ids.ts";
import type { Socket } from "node:net";
import type { Answering } from "../../ports/peers/queries.ts";
import { Answers } from "./answers.ts";
import { BULK_PHASE, BulkReceiver } from "./bulk-receiver.ts";
import { Connection, type ConnectionEnd } from "./connection.ts";
import { FRAME, frame, type FrameFault, type FrameType } from "./frame.ts";
import {
  type Ack,
  decodeHello,
  encodeAck,
  encodeRefuse,
  type Hello,
  PROTOCOL_OF_QUERIES,
  type Refuse,
} from "./handshake/hello.ts";
import type { Verdict } from "./handshake/judge.ts";
import {
  BEACON_FRAME_BYTES_MAX,
  BULK_STALL_MS,
  HANDSHAKE_BYTES_MAX,
  HANDSHAKE_MS_MAX,
  INBOUND_SILENCE_MS_MAX,
  MESSAGE_FRAME_BYTES_MAX,
  QUERY_FRAME_BYTES_MAX,
} from "./limits.ts";
import type { WireCounts } from "./stats.ts";

export interface InboundHost {
  readonly counts: WireCounts;
  /** `certified`: the node id of its certificate; null without one. */
  judge(hello: Hello, certified: string | null): Verdict;
  /** `peer`: its node id where it is known, else where it came from. */
  refused(peer: string, refusal: Refuse): void;
  accepted(inbound: Inbound, hello: Hello): void;
  message(from: PeerKey, bytes: Uint8Array): void;
  beacon(from: PeerKey, bytes: Uint8Array): void;
  bulk(from: PeerKey, bytes: Uint8Array | null): void;
  readonly answer: Answering;
  ended(inbound: Inbound): void;
}

const NOTHING = new Uint8Array(0);

export function originOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

export class Inbound {
  /** Null until its hello was accepted. */
  peer: PeerKey | null = null;
  purpose: "greeting" | "peer" | "bulk" = "greeting";
  /** The other end: TLS has a socket of its own around the one that was accepted. */
  readonly origin: string;
  readonly #host: InboundHost;
  readonly #connection: Connection;
  readonly #from: string;
  readonly #certified: string | null;
  readonly #timer: NodeJS.Timeout;

  constructor(host: InboundHost, socket: Socket, certified: string | null) {
    this.#host = host;
    this.#certified = certified;
    this.origin = originOf(socket);
    this.#from = certified ?? socket.remoteAddress ?? "somebody";
    this.#timer = setTimeout(() => this.#late(), HANDSHAKE_MS_MAX);
    this.#connection = new Connection(socket, {
      phase: { [FRAME.hello]: HANDSHAKE_BYTES_MAX },
      frame: (_type, payload) => this.#hello(payload),
      fault: (fault) => this.#refuse(this.#from, fault),
      ended: (end) => this.#ended(end),
    });
  }

  /** Told why, then closed. */
  refuse(refusal: Refuse): void {
    this.#refuse(this.#from, refusal);
  }

  close(): void {
    this.#connection.close();
  }

  /** For one that has said nothing for too long. */
  tick(nowMs: number): "alive" | "silent" {
    const silentMs = nowMs - this.#connection.heardAtMs;
    if (this.purpose === "greeting" || silentMs <= (this.purpose === "bulk" ? BULK_STALL_MS : INBOUND_SILENCE_MS_MAX)) {
      return "alive";
    }
    this.#connection.close();
    return "silent";
  }

  forgive(nowMs: number): void {
    this.#connection.heardAtMs = nowMs;
  }

  #hello(payload: Uint8Array): void {
    const decoded = decodeHello(payload);
    if (!decoded.ok) {
      this.#refuse(this.#from, decoded);
      return;
    }
    const hello = decoded.value;
    const verdict = this.#host.judge(hello, this.#certified);
    switch (verdict.kind) {
      case "refuse":
        this.#refuse(hello.nodeId, verdict);
        return;
      case "answer":
        clearTimeout(this.#timer);
        this.#connection.closeAfter(frame(FRAME.ack, encodeAck(verdict.ack)));
        return;
      case "accept":
        this.#connection.socket.write(frame(FRAME.ack, encodeAck(verdict.ack)));
        this.#accept(hello, verdict.ack);
        return;
      default:
        assertNever(verdict, "verdict");
    }
  }

  #accept(hello: Hello, ack: Ack): void {
    clearTimeout(this.#timer);
    const peer = peerKey(hello.nodeId, hello.incarnation);
    this.peer = peer;
    this.purpose = hello.purpose === "bulk" ? "bulk" : "peer";
    const refuse = (fault: FrameFault): void => this.#refuse(hello.nodeId, fault);
    const ended = (end: ConnectionEnd): void => this.#ended(end);
    if (this.purpose === "peer") {
      const answers = new Answers(peer, this.#connection, this.#host.answer, this.#host.counts);
      const phase = {
        [FRAME.message]: MESSAGE_FRAME_BYTES_MAX,
        [FRAME.beacon]: BEACON_FRAME_BYTES_MAX,
        [FRAME.ping]: 0,
        ...(ack.protocol >= PROTOCOL_OF_QUERIES ? { [FRAME.query]: QUERY_FRAME_BYTES_MAX } : {}),
      };
      this.#connection.hand({
        phase,
        frame: (type, bytes) => this.#frame(peer, answers, type, bytes),
        fault: refuse,
        ended,
      });
    } else {
      const receiver = new BulkReceiver();
      this.#connection.hand({
        phase: BULK_PHASE,
        frame: (type, bytes) => this.#bulk(peer, receiver, type, bytes),
        fault: refuse,
        ended,
      });
    }
    this.#host.accepted(this, hello);
  }

  #frame(peer: PeerKey, answers: Answers, type: FrameType, bytes: Uint8Array): void {
    if (type === FRAME.message) this.#host.message(peer, bytes);
    else if (type === FRAME.beacon) this.#host.beacon(peer, bytes);
    else if (type === FRAME.query) {
      const fault = answers.take(bytes);
      if (fault !== null) this.#refuse(peer, fault);
    } else this.#connection.outbox.push(FRAME.pong, NOTHING);
  }

  #bulk(peer: PeerKey, receiver: BulkReceiver, type: FrameType, bytes: Uint8Array): void {
    const step = receiver.take(type, bytes);
    if (step.kind === "more") {
      if (receiver.isTurnOver) this.#connection.rest();
      return;
    }
    if (step.kind === "fault") {
      this.#refuse(peer, step.fault);
      return;
    }
    this.purpose = "greeting";
    this.#connection.close();
    this.#host.bulk(peer, step.bytes);
  }

  #late(): void {
    const message = `no handshake came within ${HANDSHAKE_MS_MAX} ms`;
    this.#refuse(this.#from, { reason: "handshake-timeout", message });
  }

  #refuse(peer: string, { reason, message }: Refuse): void {
    this.#host.refused(peer, { reason, message });
    this.#connection.closeAfter(frame(FRAME.refuse, encodeRefuse({ reason, message })));
  }

  #ended(_end: ConnectionEnd): void {
    clearTimeout(this.#timer);
    if (this.purpose === "bulk" && this.peer !== null) this.#host.bulk(this.peer, null);
    this.#host.ended(this);
  }
}
