// What is asked of etcd, where answers and tokens go astray.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { EtcdAnswer, EtcdCall, EtcdWire } from "../../ports/backends/etcd.ts";
import { EtcdSession } from "./session.ts";

const never = new AbortController().signal;
const header = { revision: "9", raft_term: "2" };
const lost = (): TenureError => new TenureError("BACKEND_UNAVAILABLE", "the connection was cut");

/** Answers as it is told to, by path; what is under way rejects when its signal aborts, as the driver's does. */
function sessionOn(says: Record<string, () => Promise<EtcdAnswer>>): { session: EtcdSession; asked: string[] } {
  const asked: string[] = [];
  const call = (path: string, _body: object, { signal }: EtcdCall): Promise<EtcdAnswer> => {
    asked.push(path);
    const { promise, resolve, reject } = Promise.withResolvers<EtcdAnswer>();
    signal.addEventListener("abort", () => reject(lost()));
    says[path]?.().then(resolve, reject);
    return promise;
  };
  const wire: EtcdWire = { call, stream: () => Promise.reject(lost()), close: () => undefined };
  return { session: new EtcdSession(wire, { user: "u", password: "p" }, 1_000), asked };
}

const answers = (body: object) => async (): Promise<EtcdAnswer> => ({ kind: "answer", body });
const refuses =
  (code: number, message = "no") =>
  async (): Promise<EtcdAnswer> => ({ kind: "refused", code, message });
const TOKEN = { "/v3/auth/authenticate": answers({ token: "t" }) };

describe("a token that several wait for", () => {
  it("comes for the others when one of them gives up, who does not wait for it", async () => {
    const token = Promise.withResolvers<EtcdAnswer>();
    const { session, asked } = sessionOn({
      "/v3/auth/authenticate": () => token.promise,
      "/v3/kv/range": answers({ header }),
    });
    const impatient = new AbortController();
    const first = session.get("k", impatient.signal);
    const second = session.get("k", never);
    impatient.abort();
    await expect(first).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    token.resolve({ kind: "answer", body: { token: "t" } });
    await expect(second).resolves.toMatchObject({ revision: 9 });
    expect(asked).toEqual(["/v3/auth/authenticate", "/v3/kv/range"]);
  });

  it("is asked for again after a failure, and given up when the session is closed", async () => {
    let attempts = 0;
    const { session } = sessionOn({
      "/v3/auth/authenticate": () =>
        ++attempts === 1 ? Promise.reject(lost()) : Promise.withResolvers<EtcdAnswer>().promise,
    });
    await expect(session.get("k", never)).rejects.toThrow("cut");
    const waiting = session.get("k", never);
    session.close();
    await expect(waiting).rejects.toThrow("cut");
    expect(attempts).toBe(2);
  });
});

describe("an etcd that was restored from an older state", () => {
  const at = (revision: number) => ({ header: { revision: String(revision), raft_term: "2" } });

  it("is refused by whoever has seen a higher revision, and goes on for nobody", async () => {
    const revisions = [9, 12, 8, 12];
    const { session } = sessionOn({ ...TOKEN, "/v3/kv/range": () => answers(at(revisions.shift() ?? 0))() });
    expect((await session.get("k", never)).revision).toBe(9);
    expect((await session.scan("k", "k", {}, never)).revision).toBe(12);
    await expect(session.get("k", never)).rejects.toMatchObject({ code: "CLUSTER_MISMATCH", retryable: false });
    expect((await session.get("k", never)).revision).toBe(12);
  });

  it("is none where two answers overtake each other", async () => {
    const slow = Promise.withResolvers<EtcdAnswer>();
    const { session } = sessionOn({
      ...TOKEN,
      "/v3/kv/range": () => slow.promise,
      "/v3/kv/txn": answers({ ...at(12), succeeded: true }),
    });
    const read = session.get("k", never);
    expect((await session.txn({}, never)).revision).toBe(12);
    slow.resolve({ kind: "answer", body: at(9) });
    expect((await read).revision).toBe(9);
  });
});

describe("trap 66: a write of a user", () => {
  const TXN = "/v3/kv/txn";

  it.each([
    ["was not answered", () => Promise.reject(lost()), "OUTCOME_UNKNOWN"],
    ["never left", () => Promise.reject(Object.assign(lost(), { unsent: true })), "BACKEND_UNAVAILABLE"],
    ["timed out in etcd, which may do it later (14)", refuses(14), "OUTCOME_UNKNOWN"],
    ["had its deadline pass in etcd (4)", refuses(4), "OUTCOME_UNKNOWN"],
    ["filled the database, after it was done (8)", refuses(8), "OUTCOME_UNKNOWN"],
    ["is not allowed (7)", refuses(7), "PERMISSION_DENIED"],
    ["is none that etcd takes (3)", refuses(3), "BACKEND_UNSUPPORTED"],
    ["was answered with what is no answer", answers({ header: { revision: [] } }), "OUTCOME_UNKNOWN"],
  ])("that %s", async (_what, say, code) => {
    const { session, asked } = sessionOn({ ...TOKEN, [TXN]: say });
    await expect(session.write({}, never)).rejects.toMatchObject({ code });
    expect(asked.filter((path) => path === TXN)).toHaveLength(1);
  });

  it("that had no token to go with was not sent", async () => {
    const { session, asked } = sessionOn({ "/v3/auth/authenticate": () => Promise.reject(lost()) });
    await expect(session.write({}, never)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(asked).toEqual(["/v3/auth/authenticate"]);
  });

  it.each([
    ["forgotten", refuses(16)],
    ["of older rights (etcd 3.4)", refuses(2, "auth: revision in header is old")],
    ["of older rights", refuses(3, "etcdserver: revision of auth store is old")],
  ])("that was refused for its token, %s, is sent again with a new one", async (_, refusal) => {
    const said = [refusal, answers({ header, succeeded: true })];
    const { session } = sessionOn({ ...TOKEN, [TXN]: () => said.shift()?.() ?? Promise.reject(lost()) });
    await expect(session.write({}, never)).resolves.toMatchObject({ succeeded: true, revision: 9 });
  });
});
