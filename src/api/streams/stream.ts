// An answer that goes on: server-sent events, or JSON that takes long to make. Whoever makes it writes, and each write waits
// until the client has room again, so what one stream holds in memory is bounded by what one write brings.
//
//   open ──the maker returns──▶ ended        ──the client goes, the server stops──▶ over (`signal` aborts; the maker returns)
//     └──a write finds no room for `stallMs`──▶ cut: the client sees a broken stream, and can resume
//
// What goes wrong before the first byte is an error as everywhere; after it the stream can only be cut.

import type { FastifyReply } from "fastify";
import type { Clock } from "../../ports/clock.ts";
import type { Admission, LongPolls } from "../traffic/long-polls.ts";

export interface Outlet {
  /** Resolves when there is room for more. Rejects where there is nobody to write to: let it pass. */
  write(text: string): Promise<void>;
  /**
   * Hands the bytes over at once, system call included, so that whoever writes to many can see what it takes. False: wait for
   * `room` before the next. Throws where there is nobody to write to: let it pass.
   */
  push(bytes: Uint8Array): boolean;
  /** Resolves when there is room again. Rejects as `write` does. */
  room(): Promise<void>;
  /** Aborts when the client has gone or the server stops. */
  readonly signal: AbortSignal;
}

export interface Pouring {
  readonly headers: Readonly<Record<string, string>>;
  readonly isHead: boolean;
  readonly gone: AbortSignal;
  readonly polls: LongPolls;
  readonly admission: Admission;
  readonly clock: Clock;
  readonly stallMs: number;
  readonly onFault: (error: unknown) => void;
}

class Cut extends Error {}

export async function pour(reply: FastifyReply, make: (out: Outlet) => Promise<void>, pouring: Pouring): Promise<void> {
  const { headers, isHead, gone, polls, admission, clock, stallMs, onFault } = pouring;
  const raw = reply.raw;
  const all = { ...reply.getHeaders(), ...headers } as Record<string, string>;
  reply.hijack();
  raw.writeHead(200, all);
  if (isHead) return void raw.end();
  raw.flushHeaders();
  const poll = polls.open(null, gone, admission);
  const { signal } = poll;
  const mustBeThere = (): void => {
    if (signal.aborted || raw.destroyed) throw new Cut("the client has gone, or the server stops");
  };
  const room = async (): Promise<void> => {
    mustBeThere();
    if (raw.writableNeedDrain && !(await hasRoom(raw, clock, stallMs, signal)))
      throw new Cut("the client does not read");
  };
  const write = async (text: string): Promise<void> => {
    mustBeThere();
    if (!raw.write(text) && !(await hasRoom(raw, clock, stallMs, signal))) throw new Cut("the client does not read");
  };
  const push = (bytes: Uint8Array): boolean => {
    mustBeThere();
    // A response that finds its socket uncorked corks it until the end of the turn, and writes then.
    raw.socket?.cork();
    const hasFound = raw.write(bytes);
    raw.socket?.uncork();
    return hasFound;
  };
  try {
    await make({ write, push, room, signal });
    raw.end();
  } catch (error) {
    // A stream that the server ends, by its stop or for its reader, is whole as far as it goes; others must be seen to be broken.
    if (poll.ended === "stop" || poll.ended === "refused") raw.end();
    else raw.destroy();
    if (!(error instanceof Cut)) onFault(error);
  } finally {
    poll.close();
  }
}

interface Drainable {
  once(event: "drain", listener: () => void): unknown;
  off(event: "drain", listener: () => void): unknown;
}

/** In two halves: where this process itself stood still, the first comes late, and what was read meanwhile is heard after it. */
function hasRoom(raw: Drainable, clock: Clock, stallMs: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (room: boolean): void => {
      timer.cancel();
      raw.off("drain", drained);
      signal.removeEventListener("abort", over);
      resolve(room);
    };
    const drained = (): void => settle(true);
    const over = (): void => settle(false);
    const halfMs = stallMs / 2;
    let timer = clock.setTimer(clock.monotonicMs() + halfMs, () => {
      timer = clock.setTimer(clock.monotonicMs() + halfMs, over);
    });
    raw.once("drain", drained);
    signal.addEventListener("abort", over, { once: true });
    if (signal.aborted) over();
  });
}
