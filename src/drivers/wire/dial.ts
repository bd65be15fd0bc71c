// One attempt to reach a peer: TCP, TLS, hello, acknowledgement. It ends exactly once, with a connection that is ready for its
// owner, or with the reason why not. TLS has proved who speaks before the first frame is read (handshake/security.ts,
// secret.ts), so a refusal is the peer's own word; whatever somebody unproved says is a failed dial.

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Address, formatAddress } from "./address.ts";
import { Connection, type ConnectionEnd } from "./connection.ts";
import { FRAME, frame, type FrameFault, type FrameType } from "./frame.ts";
import { type Ack, decodeAck, decodeRefuse, encodeHello, type Hello, type Refuse } from "./handshake/hello.ts";
import { leaseMismatch } from "./handshake/judge.ts";
import { DIAL_MS_MAX, HANDSHAKE_BYTES_MAX, HANDSHAKE_MS_MAX } from "./limits.ts";
import { type Channel, explain, IdentityError } from "./handshake/security.ts";

export type DialFailure =
  /** No connection came about. `refused`: the other machine said that nobody listens there. */
  | { readonly kind: "unreachable"; readonly refused: boolean; readonly message: string }
  /** It ended before the acknowledgement. */
  | ({ readonly kind: "cut"; readonly message: string } & Spoken)
  | ({ readonly kind: "refused-by-us" } & Refuse & Spoken)
  | ({ readonly kind: "refused-by-peer" } & Refuse);

interface Spoken {
  /** Somebody took the connection and sent nothing on it, not even TLS: a proxy does that for a node that is not up. */
  readonly silent?: boolean | undefined;
}

export interface DialTarget {
  readonly address: Address;
  /** The address that the last connection led to: no name is looked up while a leader may be dead. */
  readonly lastIp: string | null;
  readonly nodeId: string;
}

export interface DialResult {
  /** Takes the connection over with `hand`, in this very call. */
  connected(connection: Connection, ack: Ack): void;
  failed(failure: DialFailure): void;
}

export class Dial {
  readonly #target: DialTarget;
  readonly #hello: Hello;
  readonly #channel: Channel | null;
  readonly #result: DialResult;
  readonly #connection: Connection;
  #timer: NodeJS.Timeout;
  #isUp = false;
  #isSecured = false;
  #done = false;

  /** `channel`: null in tests of the wire only. */
  constructor(target: DialTarget, hello: Hello, channel: Channel | null, result: DialResult) {
    this.#target = target;
    this.#hello = hello;
    this.#channel = channel;
    this.#result = result;
    const { port } = target.address;
    const host = target.lastIp ?? target.address.host;
    const socket: Socket =
      channel === null ? connectTcp({ host, port }) : connectTls({ host, port, ...channel.dialOptions(target.nodeId) });
    this.#timer = setTimeout(() => this.#late(), DIAL_MS_MAX);
    this.#connection = new Connection(socket, {
      phase: { [FRAME.ack]: HANDSHAKE_BYTES_MAX, [FRAME.refuse]: HANDSHAKE_BYTES_MAX },
      frame: (type, payload) => this.#frame(type, payload),
      fault: (fault) => this.#fault(fault),
      ended: (end) => this.#ended(end),
    });
    // The timer of a dial ends with TCP's own connect: whoever accepted it may be busy with its handshake.
    socket.once("connect", () => {
      clearTimeout(this.#timer);
      if (!this.#done) this.#timer = setTimeout(() => this.#late(), HANDSHAKE_MS_MAX);
      this.#isUp = true;
    });
    socket.once(channel === null ? "connect" : "secureConnect", () => {
      this.#isSecured = channel !== null;
      if (!this.#done) socket.write(frame(FRAME.hello, encodeHello(hello)));
    });
  }

  /** Nothing is told any more. */
  cancel(): void {
    this.#finish(() => this.#connection.close());
  }

  #late(): void {
    const where = formatAddress(this.#target.address);
    const failure: DialFailure = this.#isUp
      ? {
          kind: "refused-by-us",
          reason: "handshake-timeout",
          message: `${where} did not finish the handshake within ${HANDSHAKE_MS_MAX} ms`,
          silent: this.#isSilent,
        }
      : { kind: "unreachable", refused: false, message: `${where} did not answer within ${DIAL_MS_MAX} ms` };
    this.#fail(failure);
  }

  #frame(type: FrameType, payload: Uint8Array): void {
    if (type === FRAME.refuse) {
      const refusal = decodeRefuse(payload);
      if (refusal === undefined) this.#fault({ reason: "garbage", message: "its refusal can't be read" });
      else this.#fail({ kind: "refused-by-peer", ...refusal });
      return;
    }
    const decoded = decodeAck(payload);
    if (!decoded.ok) {
      this.#fail({ kind: "refused-by-us", reason: decoded.reason, message: decoded.message });
      return;
    }
    const refusal = this.#judge(decoded.value);
    if (refusal !== null) this.#fail({ kind: "refused-by-us", ...refusal });
    else this.#finish(() => this.#result.connected(this.#connection, decoded.value));
  }

  /** The other has judged our hello in the same way; a wrong one is caught on either side. */
  #judge(ack: Ack): Refuse | null {
    const { nodeId } = this.#target;
    if (ack.nodeId !== nodeId) {
      const message = `the node there is ${ack.nodeId}, not ${nodeId}; correct its address`;
      return { reason: "id-of-another", message };
    }
    if (this.#hello.purpose === "ask") return null;
    if (ack.clusterId !== this.#hello.clusterId) {
      const message = `it is of cluster ${ack.clusterId}, this node of ${this.#hello.clusterId}`;
      return { reason: "other-cluster", message };
    }
    if (ack.leaseEnabled !== this.#hello.leaseEnabled) {
      return { reason: "lease-mismatch", message: leaseMismatch(ack, this.#hello) };
    }
    return null;
  }

  #fault({ reason, message }: FrameFault): void {
    this.#fail({ kind: "refused-by-us", reason, message: `it does not answer as a node does: ${message}` });
  }

  #ended(end: ConnectionEnd): void {
    const where = formatAddress(this.#target.address);
    if (end.kind !== "failed") {
      const isUp = this.#isUp;
      const message = `${where} ended the connection${isUp ? " before the handshake was over" : ""}`;
      this.#fail(
        isUp ? { kind: "cut", message, silent: this.#isSilent } : { kind: "unreachable", refused: false, message },
      );
      return;
    }
    const { error } = end;
    if (error instanceof IdentityError) return this.#fail({ kind: "refused-by-us", ...error.refusal });
    const code = error.code ?? "";
    if (this.#isUp) {
      const failure = tlsFailure(code, error.message);
      return this.#fail({ kind: "refused-by-us", ...(this.#channel?.refusal(failure) ?? failure) });
    }
    this.#fail({ kind: "unreachable", refused: code === "ECONNREFUSED", message: unreachable(where, code, error) });
  }

  get #isSilent(): boolean {
    return !this.#isSecured && this.#connection.receivedBytes === 0;
  }

  #fail(failure: DialFailure): void {
    this.#finish(() => {
      this.#connection.close();
      this.#result.failed(failure);
    });
  }

  #finish(act: () => void): void {
    if (this.#done) return;
    this.#done = true;
    clearTimeout(this.#timer);
    act();
  }
}

function tlsFailure(code: string, text: string): Refuse {
  if (/^(CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|INVALID_|HOSTNAME)/.test(code)) {
    return { reason: "certificate", message: `its certificate is not trusted here: ${explain(code)}` };
  }
  if (/ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE)/.test(code)) {
    return { reason: "certificate", message: `it does not trust this node's certificate (${code})` };
  }
  return { reason: "tls", message: `TLS failed (${code === "" ? text : code}); does it speak TLS 1.3 there?` };
}

function unreachable(where: string, code: string, error: Error): string {
  switch (code) {
    case "ECONNREFUSED":
      return `nobody listens on ${where}`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the name in ${where} can't be looked up (${code})`;
    default:
      return `${where} can't be reached (${code === "" ? error.message : code})`;
  }
}
