// The workload lin-kv on one node: read, write and cas of single keys, on the replicated store of the tests.
//
//   request ─▶ we lead: proposed ─▶ write_ok | cas_ok | 20 | 22 | timeout (its fate is not known here)
//          └─▶ we do not: forwarded to the leader, once ─▶ its answer | timeout (none came, or it could not know)
//                                                     └─▶ 11: nobody leads, nothing was written
//
// A definite error is said only where nothing can have been written (trap 66). Reads are served by every node, after
// a read index.

import { assertNever } from "../../src/core/kit/assert.ts";
import { nodeIdOf } from "../../src/core/kit/ids.ts";
import type { Lead, Proposals } from "../../src/ports/consensus.ts";
import { encodeCommand, type Command, type KvMachine } from "../kv/machine.ts";
import { type Body, ERROR, errorBody } from "./protocol.ts";

const READ_TIMEOUT_MS = 1_000;
const FORWARD_TIMEOUT_MS = 1_000;
const FORWARDS_MAX = 10_000;

export class LinKv {
  readonly #consensus: Proposals & Pick<Lead, "readIndex" | "status">;
  readonly #machine: KvMachine;
  readonly #send: (dest: string, body: Body) => void;
  readonly #forwarded = new Map<number, (answer: Body) => void>();
  #nextForward = 0;

  constructor(
    consensus: Proposals & Pick<Lead, "readIndex" | "status">,
    machine: KvMachine,
    send: (dest: string, body: Body) => void,
  ) {
    this.#consensus = consensus;
    this.#machine = machine;
    this.#send = send;
  }

  /** What is answered to a client, whichever node it asked. */
  async serve(request: Body): Promise<Body> {
    switch (request.type) {
      case "read":
        return this.#read(request);
      case "write":
      case "cas":
        return this.#isLeader ? this.#write(request) : this.#forward(request);
      default:
        return errorBody(ERROR.notSupported, `lin-kv knows read, write and cas, not ${request.type}`);
    }
  }

  /** Another node asks in a client's name. It is not forwarded again: two nodes could send it round for ever. */
  async forwarded(src: string, body: Body): Promise<void> {
    const request = body["request"] as Body;
    const answer = this.#isLeader ? await this.#write(request) : noLeader();
    this.#send(src, { type: "forward_ok", forward: body["forward"], answer });
  }

  forwardAnswered(body: Body): void {
    this.#forwarded.get(Number(body["forward"]))?.(body["answer"] as Body);
  }

  get #isLeader(): boolean {
    return this.#consensus.status().role === "leader";
  }

  async #read(request: Body): Promise<Body> {
    const index = await this.#consensus.readIndex(READ_TIMEOUT_MS);
    if (index === null) return noLeader();
    const value = this.#machine.get(keyOf(request));
    if (value === null) return errorBody(ERROR.keyDoesNotExist, "no such key");
    return { type: "read_ok", value: JSON.parse(Buffer.from(value).toString()) as unknown };
  }

  async #write(request: Body): Promise<Body> {
    const outcome = await this.#consensus.propose([encodeCommand(commandOf(request))]);
    if (outcome.outcome === "refused") return errorBody(ERROR.temporarilyUnavailable, outcome.message);
    if (outcome.outcome === "unknown") return unknown();
    if (request.type === "write") return { type: "write_ok" };
    const result = this.#machine.takeCasResult(outcome.index);
    switch (result) {
      case "done":
        return { type: "cas_ok" };
      case "missing":
        return errorBody(ERROR.keyDoesNotExist, "no such key");
      case "different":
        return errorBody(ERROR.preconditionFailed, "another value is there");
      default:
        return assertNever(result, "write");
    }
  }

  #forward(request: Body): Promise<Body> {
    const { leader } = this.#consensus.status();
    if (leader === null || this.#forwarded.size >= FORWARDS_MAX) return Promise.resolve(noLeader());
    const forward = this.#nextForward++;
    return new Promise((resolve) => {
      const settle = (answer: Body): void => {
        clearTimeout(timer);
        this.#forwarded.delete(forward);
        resolve(answer);
      };
      const timer = setTimeout(() => settle(unknown()), FORWARD_TIMEOUT_MS);
      this.#forwarded.set(forward, settle);
      this.#send(nodeIdOf(leader), { type: "forward", forward, request });
    });
  }
}

function noLeader(): Body {
  return errorBody(ERROR.temporarilyUnavailable, "no leader is known here; nothing was written");
}

function unknown(): Body {
  return errorBody(ERROR.timeout, "it may have been written, or may still be");
}

/** Keys and values are any JSON. */
function keyOf(request: Body): string {
  return JSON.stringify(request["key"]);
}

function bytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

function commandOf(request: Body): Command {
  const key = keyOf(request);
  if (request.type === "write") return { kind: "put", key, value: bytes(request["value"]) };
  return { kind: "cas", key, expected: bytes(request["from"]), value: bytes(request["to"]) };
}
