// Serves the test store to clients: takes what came in one turn of the event loop as one proposal and one read, and
// sends what became known in one turn as one write to each connection.
//
//   frame ─▶ collected ─(end of the turn)─▶ propose | readIndex ─▶ answered: committed | value | refused | unknown
//
// Every request gets one answer, unless its connection ends first. What was proposed and whose fate is not known here is
// `unknown`, never an error (trap 66).

import { assertNever } from "../../src/core/kit/assert.ts";
import { createServer, type Server, type Socket } from "node:net";
import { nodeIdOf } from "../../src/core/kit/ids.ts";
import { PROPOSALS_PER_STEP_MAX } from "../../src/core/kit/limits.ts";
import type { RaftEvent } from "../../src/core/raft/index.ts";
import type { Lead, ProposeOutcome, Proposals } from "../../src/ports/consensus.ts";
import type { KvMachine } from "./machine.ts";
import {
  type Answer,
  decodeRequest,
  encodeAnswer,
  type Frame,
  FrameReader,
  FrameWriter,
  NOTICE_ID,
  type Request,
} from "./protocol.ts";

const HOST = "127.0.0.1";
const READ_TIMEOUT_MS = 1_000;
const UNKNOWN: Answer = { kind: "unknown" };

type Serving = Proposals & Pick<Lead, "readIndex" | "status">;

interface Waiting {
  readonly connection: Connection;
  readonly request: Request;
}

export class KvService {
  readonly #consensus: Serving;
  readonly #machine: KvMachine;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  readonly #dirty = new Set<Connection>();
  #writes: Waiting[] = [];
  #reads: Waiting[] = [];
  #isScheduled = false;
  #isFlushScheduled = false;

  constructor(consensus: Serving, machine: KvMachine) {
    this.#consensus = consensus;
    this.#machine = machine;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, HOST, resolve);
    });
    return (this.#server.address() as { port: number }).port;
  }

  close(): void {
    this.#server.close();
    for (const { socket } of this.#connections) socket.destroy();
  }

  /** To be notified of every event: clients that wait for a leader which is gone hear of the next one at once. */
  event(event: RaftEvent): void {
    const { leader, established, role } = this.#consensus.status();
    const isNews = event.kind === "established" || (event.kind === "role" && event.role === "follower");
    if (!isNews || leader === null || (role === "leader" && !established)) return;
    for (const connection of this.#connections) this.#notify(connection);
  }

  #notify(connection: Connection): void {
    const { leader, term } = this.#consensus.status();
    if (leader === null) return;
    this.#answer(connection, NOTICE_ID, { kind: "leader", term, leader: nodeIdOf(leader) });
  }

  // ---- requests ------------------------------------------------------------------------------------

  #accept(socket: Socket): void {
    const connection: Connection = { socket, out: new FrameWriter() };
    const reader = new FrameReader();
    this.#connections.add(connection);
    this.#notify(connection);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#connections.delete(connection);
      this.#dirty.delete(connection);
    });
    socket.on("data", (chunk: Buffer) => {
      try {
        reader.read(chunk, (frame) => this.#take(connection, frame));
      } catch {
        // Not our protocol, and there is no frame to answer to.
        socket.destroy();
      }
    });
  }

  #take(connection: Connection, frame: Frame): void {
    const request = decodeRequest(frame);
    switch (request.kind) {
      case "get":
        this.#reads.push({ connection, request });
        break;
      case "put":
      case "cas":
        this.#writes.push({ connection, request });
        break;
    }
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // After all sockets that are readable in this turn of the loop.
    setImmediate(() => this.#submit());
  }

  #submit(): void {
    this.#isScheduled = false;
    const writes = this.#writes;
    const reads = this.#reads;
    this.#writes = [];
    this.#reads = [];
    for (let from = 0; from < writes.length; from += PROPOSALS_PER_STEP_MAX) {
      void this.#write(writes.slice(from, from + PROPOSALS_PER_STEP_MAX));
    }
    if (reads.length > 0) void this.#read(reads);
  }

  // ---- writes --------------------------------------------------------------------------------------

  async #write(waiting: readonly Waiting[]): Promise<void> {
    const outcome = await this.#consensus.propose(waiting.map(({ request }) => request.body));
    for (const [at, { connection, request }] of waiting.entries()) {
      this.#answer(connection, request.id, this.#answerTo(outcome, request, waiting.length - 1 - at));
    }
  }

  /** `before`: how many entries of the same proposal come after this one. */
  #answerTo(outcome: ProposeOutcome, request: Request, before: number): Answer {
    switch (outcome.outcome) {
      case "committed": {
        const index = outcome.index - before;
        return {
          kind: "committed",
          index,
          done: request.kind === "put" || this.#machine.takeCasResult(index) === "done",
        };
      }
      case "refused":
        return this.#refused(outcome.code);
      case "unknown":
        return UNKNOWN;
      default:
        return assertNever(outcome, "answerTo");
    }
  }

  // ---- reads ---------------------------------------------------------------------------------------

  /** One round of confirmation for everything that was asked before it started (trap 20). */
  async #read(waiting: readonly Waiting[]): Promise<void> {
    const index = await this.#consensus.readIndex(READ_TIMEOUT_MS);
    for (const { connection, request } of waiting) {
      if (index === null) this.#answer(connection, request.id, this.#refused("ERR_NO_LEADER"));
      else {
        const value = this.#machine.get(Buffer.from(request.body).toString());
        this.#answer(connection, request.id, { kind: "value", index, value });
      }
    }
  }

  // ---- answers -------------------------------------------------------------------------------------

  #refused(code: string): Answer {
    const { leader } = this.#consensus.status();
    return { kind: "refused", code, leader: leader === null ? "" : nodeIdOf(leader) };
  }

  #answer(connection: Connection, id: number, answer: Answer): void {
    if (connection.socket.destroyed) return;
    encodeAnswer(connection.out, id, answer);
    this.#dirty.add(connection);
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    // After the other answers that the same turn of the engine has settled.
    process.nextTick(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushScheduled = false;
    for (const { socket, out } of this.#dirty) if (!socket.destroyed && !out.isEmpty) socket.write(out.take());
    this.#dirty.clear();
  }
}

interface Connection {
  readonly socket: Socket;
  readonly out: FrameWriter;
}
