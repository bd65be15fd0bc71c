// A node that acknowledges every hello and then does not read, until it is told to.

import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type PeerKey, peerKey } from "../../src/core/kit/ids.ts";
import { FRAME, frame, FrameReader } from "../../src/drivers/wire/frame.ts";
import { encodeAck, encodeRefuse } from "../../src/drivers/wire/handshake/hello.ts";
import { atTheEnd } from "./test-node.ts";

const ANY = 16 * 1024 * 1024;

export class DeafNode {
  readonly self: PeerKey;
  readonly address: string;
  /** Since it reads. */
  messages = 0;
  /** Chunks with a message in them, as the network delivered them. */
  chunks = 0;
  #socket: Socket | null = null;
  readonly #mood: "patient" | "refuses";
  readonly #sockets = new Set<Socket>();

  private constructor(nodeId: string, server: Server, mood: "patient" | "refuses") {
    this.#mood = mood;
    this.self = peerKey(nodeId, "1");
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("data", () => {
        socket.pause();
        const introduction = {
          clusterId: "c1",
          nodeId,
          incarnation: "1",
          address: this.address,
          apiUrl: null,
          leaseEnabled: false,
        };
        socket.write(frame(FRAME.ack, encodeAck({ protocol: 1, ...introduction, peers: [] })));
        // Others hear of this node too, and dial it.
        this.#socket ??= socket;
      });
    });
    atTheEnd(() => {
      for (const socket of this.#sockets) socket.destroy();
      server.close();
    });
  }

  /** `refuses`: it refuses the first message that it hears. */
  static async listen(nodeId: string, mood: "patient" | "refuses" = "patient"): Promise<DeafNode> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new DeafNode(nodeId, server, mood);
  }

  hear(): void {
    const reader = new FrameReader({ [FRAME.message]: ANY, [FRAME.ping]: 0 });
    this.#socket?.on("data", (chunk: Buffer) => {
      const before = this.messages;
      reader.push(chunk, (type) => {
        if (type === FRAME.message) this.#message();
        else this.#socket?.write(frame(FRAME.pong, new Uint8Array(0)));
      });
      if (this.messages > before) this.chunks++;
    });
    this.#socket?.resume();
  }

  #message(): void {
    this.messages++;
    if (this.#mood === "patient") return;
    this.#socket?.end(frame(FRAME.refuse, encodeRefuse({ reason: "oversized-frame", message: "too large for me" })));
  }
}
