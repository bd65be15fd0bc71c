// An etcd for unit tests that says what it is told to: an answer for each path, and a log of what was asked. Watches
// stay silent until their signal aborts; an answer comes even then, as one that was on its way already.

import { TenureError } from "../../core/kit/errors.ts";
import type { LossReason } from "../../ports/backends/backend.ts";
import type { EtcdAnswer, EtcdCall, EtcdStreamEnd, EtcdWire } from "../../ports/backends/etcd.ts";
import { claimOn } from "../test-seat.ts";
import { etcdSettings } from "./options.ts";
import { EtcdSeat } from "./seat.ts";
import { EtcdSession } from "./session.ts";

export type Say = (body: Record<string, unknown>) => object | Promise<object>;

export class TestWire implements EtcdWire {
  readonly asked: string[] = [];
  readonly says: Record<string, Say>;

  constructor(says: Record<string, Say>) {
    this.says = says;
  }

  async call(path: string, body: object): Promise<EtcdAnswer> {
    this.asked.push(path);
    const say = this.says[path];
    if (say === undefined) throw new Error(`nobody said what ${path} answers`);
    const answer = await say(body as Record<string, unknown>);
    return "kind" in answer ? (answer as EtcdAnswer) : { kind: "answer", body: answer };
  }

  stream(_path: string, _body: object, options: EtcdCall): Promise<EtcdStreamEnd> {
    return new Promise((_, reject) => {
      options.signal.addEventListener("abort", () => reject(new TenureError("BACKEND_UNAVAILABLE", "aborted")));
    });
  }

  close(): void {}
}

/** Answers of a healthy etcd at Raft term 7 in which nobody leads and whoever asks wins epoch 42. */
export function healthy(): Record<string, Say> {
  const header = { revision: "42", raft_term: "7" };
  return {
    "/v3/lease/grant": () => ({ header, ID: "1001", TTL: "6" }),
    "/v3/lease/keepalive": () => ({ result: { header, ID: "1001", TTL: "6" } }),
    "/v3/lease/revoke": () => ({ header }),
    "/v3/kv/range": () => ({ header }),
    "/v3/kv/txn": () => ({ header, succeeded: true, responses: [{ response_range: {} }] }),
  };
}

export interface Sat {
  readonly seat: EtcdSeat;
  readonly wire: TestWire;
  readonly losses: [number, LossReason][];
}

/** The clock gains a millisecond whenever it is read. */
export function sit(says: Record<string, Say>): Sat {
  const wire = new TestWire(says);
  const settings = etcdSettings("http://127.0.0.1:2379");
  let nowMs = 0;
  const { claim, losses } = claimOn({
    monotonicMs: () => ++nowMs,
    wallMs: () => nowMs,
    setTimer: () => ({ cancel: () => undefined }),
  });
  return { seat: new EtcdSeat(claim, settings, new EtcdSession(wire, undefined, 1_000)), wire, losses };
}
