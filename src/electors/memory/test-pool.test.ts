// `term.tx` and `term.fence` of `testBackend()`, as a user's own unit test has them: no database, and the same refusals.

import { describe, expect, it } from "vitest";
import { createElector } from "../../entry/index.ts";
import { testBackend, type TestBackend, type TestClient } from "../../entry/testing.ts";

const scope = "payer's 2nd";

/** Two instances; "a" leads, and "b" waits. */
async function stage(backend: TestBackend = testBackend()) {
  const a = createElector({ scope, backend: backend.instance("a") });
  const b = createElector({ scope, backend: backend.instance("b") });
  const term = await a.acquire();
  const next = b.acquire();
  /** The next epoch is granted while "a" has not heard of it; its gate is still open. */
  const overtake = async (): Promise<void> => {
    await backend.freeze("a");
    await backend.kill("a");
    await next;
  };
  return { backend, term, overtake };
}

const insert = async (client: TestClient, what: string): Promise<unknown> =>
  client.query("insert into written values ($1)", [what]);

const committed = ({ pool }: TestBackend): unknown[] => pool.committed.flatMap(({ values }) => values);

describe("tx of a test backend", () => {
  it("commits what its work sends, gives it the rows of the test, and resolves with its result", async () => {
    const asked: unknown[] = [];
    const backend = testBackend({
      query: (text, values) => {
        asked.push([text, ...values]);
        return [{ balance: 7 }];
      },
    });
    const { term } = await stage(backend);
    const balance = await term.tx(async (client) => {
      await insert(client, "rent");
      const { rows } = await client.query<{ balance: number }>("select balance from account");
      return rows[0]?.balance;
    });
    expect(balance).toBe(7);
    expect(asked).toEqual([["insert into written values ($1)", "rent"], ["select balance from account"]]);
    expect(backend.pool.committed.map(({ text }) => text)).toEqual([
      "insert into written values ($1)",
      "select balance from account",
    ]);
  });

  it("rolls back what its work does not end well, and keeps the work's own error", async () => {
    const { backend, term } = await stage();
    const mine = new Error("mine");
    const failed = term.tx(async (client) => {
      await insert(client, "gone");
      throw mine;
    });
    await expect(failed).rejects.toBe(mine);
    await term.tx((client) => insert(client, "kept"));
    expect(committed(backend)).toEqual(["kept"]);
  });

  it("refuses an epoch that is over, before the work is called, and ends the term", async () => {
    const { backend, term, overtake } = await stage();
    await overtake();
    let isCalled = false;
    const stale = term.tx(() => {
      isCalled = true;
    });
    await expect(stale).rejects.toMatchObject({ code: "STALE_EPOCH", scope, epoch: term.epoch });
    expect(isCalled).toBe(false);
    expect(term.signal.aborted).toBe(true);
    expect(committed(backend)).toEqual([]);
  });

  it("ends a transaction under way when the next epoch is granted: nothing is written, and that is known", async () => {
    const { backend, term, overtake } = await stage();
    const late = term.tx(async (client) => {
      await insert(client, "stale");
      await overtake();
    });
    await expect(late).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", message: /nothing was written/ });
    const { term: other, overtake: overtakeOther, backend: second } = await stage();
    const later = other.tx(async (client) => {
      await overtakeOther();
      await insert(client, "stale");
    });
    await expect(later).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect([...committed(backend), ...committed(second)]).toEqual([]);
  });

  it("lets the transaction of a leader that resigns finish, and no other begin", async () => {
    const backend = testBackend();
    await using elector = createElector({ scope, backend });
    const term = await elector.acquire();
    await term.tx(async (client) => {
      await term.resign();
      await insert(client, "last");
    });
    expect(committed(backend)).toEqual(["last"]);
    await expect(term.tx((client) => insert(client, "later"))).rejects.toMatchObject({ code: "NOT_LEADER" });
  });

  it("has the misuses of the real one", async () => {
    const { backend, term } = await stage(
      testBackend({
        query: (text) => {
          if (text.includes("fails")) throw new Error("it fails");
          return [];
        },
      }),
    );
    let kept: TestClient | undefined;
    const misuses = [
      term.tx((client) => client.query("commit")),
      term.tx((client) => client.release()),
      term.tx(async (client) => {
        await insert(client, "gone");
        await client.query("fails").catch(() => undefined);
      }),
      term
        .tx((client) => {
          kept = client;
        })
        .then(() => insert(kept!, "late")),
    ];
    for (const misuse of misuses) await expect(misuse).rejects.toMatchObject({ code: "TX_MISUSED" });
    expect(committed(backend)).toEqual([]);
  });

  it("takes savepoints back alone", async () => {
    const { backend, term } = await stage();
    await term.tx(async (client) => {
      await insert(client, "first");
      await client.query("savepoint a");
      await insert(client, "undone");
      await client.query("rollback to a");
      await client.query('savepoint "b"');
      await insert(client, "last");
      await client.query('release savepoint "b"');
    });
    expect(committed(backend)).toEqual(["first", "last"]);
  });
});

describe("fence of a test backend", () => {
  /** What the code under test does with a pool of `pg`. */
  async function post(backend: TestBackend, fence: (client: TestClient) => Promise<unknown>): Promise<void> {
    const client = await backend.pool.connect();
    try {
      await client.query("begin");
      await fence(client);
      await insert(client, "rent");
      await client.query("commit");
    } finally {
      client.release();
    }
  }

  it("is accepted in a transaction of the test's pool, which then commits", async () => {
    const { backend, term } = await stage();
    await post(backend, (client) => term.fence((text, values) => client.query(text, values)));
    await post(backend, (client) => term.fence((text) => client.query({ text, rowMode: "array" })));
    expect(committed(backend)).toEqual(["rent", "rent"]);
  });

  it("is refused outside of one, through the pool, and where run does nothing", async () => {
    const { backend, term } = await stage();
    const client = await backend.pool.connect();
    for (const misuse of [
      term.fence(async () => {}),
      term.fence((text) => client.query(text)),
      post(backend, () => term.fence((text) => backend.pool.query(text))),
    ]) {
      await expect(misuse).rejects.toMatchObject({ code: "TX_MISUSED" });
    }
    expect(committed(backend)).toEqual([]);
  });

  it("refuses an epoch that is over, and ends a transaction that the next leader has met", async () => {
    const { backend, term, overtake } = await stage();
    const met = post(backend, async (client) => {
      await term.fence((text) => client.query(text));
      await overtake();
    });
    await expect(met).rejects.toThrow("the next leader has ended this session");
    await expect(post(backend, (client) => term.fence((text) => client.query(text)))).rejects.toMatchObject({
      code: "STALE_EPOCH",
    });
    expect(committed(backend)).toEqual([]);
  });
});
