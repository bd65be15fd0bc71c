// Somebody who dials a node by hand and says what no node would.

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { FRAME, frame, FrameReader, type FrameType } from "../../src/drivers/wire/frame.ts";
import {
  type Ack,
  decodeAck,
  decodeRefuse,
  encodeHello,
  type Hello,
  type Refuse,
} from "../../src/drivers/wire/handshake/hello.ts";
import type { PeerTls } from "../../src/drivers/wire/index.ts";
import { waitFor } from "../servers/index.ts";
import { atTheEnd } from "./test-node.ts";

const ANY = 1024 * 1024;

export class Stranger {
  readonly frames: { readonly type: FrameType; readonly payload: Uint8Array }[] = [];
  isClosed = false;
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const phase = Object.fromEntries(Object.values(FRAME).map((type) => [type, ANY]));
    const reader = new FrameReader(phase);
    socket.on(
      "data",
      (chunk: Buffer) => void reader.push(chunk, (type, payload) => void this.frames.push({ type, payload })),
    );
    socket.on("error", () => undefined);
    socket.on("close", () => (this.isClosed = true));
    atTheEnd(() => void socket.destroy());
  }

  /** It trusts anybody, so that only the other side decides. */
  static async dial(port: number, tls?: Partial<PeerTls> | ConnectionOptions): Promise<Stranger> {
    const host = "127.0.0.1";
    const socket =
      tls === undefined ? connectTcp({ host, port }) : connectTls({ host, port, ...tls, rejectUnauthorized: false });
    const stranger = new Stranger(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.once(tls === undefined ? "connect" : "secureConnect", () => resolve());
    });
    return stranger;
  }

  write(bytes: Uint8Array | string): void {
    this.#socket.write(bytes);
  }

  hello(change: Partial<Hello> = {}): void {
    const hello: Hello = {
      protocolMin: 1,
      protocolMax: 1,
      purpose: "peer",
      clusterId: "c1",
      nodeId: "n9",
      incarnation: "9",
      address: "127.0.0.1:9",
      apiUrl: null,
      leaseEnabled: false,
      ...change,
    };
    this.write(frame(FRAME.hello, encodeHello(hello)));
  }

  async ack(): Promise<Ack> {
    await waitFor("an acknowledgement", () => this.frames.length > 0, 10_000);
    const decoded = decodeAck(this.frames[0]!.payload);
    if (this.frames[0]?.type !== FRAME.ack || !decoded.ok)
      throw new Error(`no acknowledgement: ${this.refusal?.message}`);
    return decoded.value;
  }

  get refusal(): Refuse | undefined {
    const refuse = this.frames.find(({ type }) => type === FRAME.refuse);
    return refuse === undefined ? undefined : decodeRefuse(refuse.payload);
  }

  /** It is told why, and the connection ends. */
  async refused(): Promise<Refuse> {
    await waitFor("a refusal and the end", () => this.refusal !== undefined && this.isClosed, 15_000);
    return this.refusal!;
  }
}
