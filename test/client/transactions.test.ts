// client.transaction and `tenure txn` on two real islands over TLS: what was collected is done at both, or at none.

import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { certificateFetch } from "../../src/cli/connection/transport.ts";
import { type Client, createClient, newTransactionId, type TransactionRequest } from "../../src/entry/client.ts";
import { ISLANDS_MS_MAX, TestIslands } from "../coordinators/test-islands.ts";
import { waitFor } from "../servers/index.ts";

const BOTH = ["i1", "i2"] as const;
type Island = (typeof BOTH)[number];

let islands: TestIslands;
/** Decides transactions, at any node. */
let decider: Client;
/** Reads and writes at one island. */
let at: Readonly<Record<Island, Client>>;
/** Looks at one island's transactions. */
let operator: Readonly<Record<Island, Client>>;
let hashes: Readonly<Record<Island, string>>;

beforeAll(async () => {
  islands = await TestIslands.start(...BOTH);
  for (const kind of ["--sdk app", "--tc app", "--operator ada"]) {
    const { code, stderr } = await islands.run(`tenure cert issue --dir ca --out people ${kind}`);
    expect(code, stderr).toBe(0);
  }
  copyFileSync(join(islands.directory, "ca", "ca.crt"), join(islands.directory, "people", "ca.crt"));
  decider = clientOf("tc-app", BOTH);
  at = { i1: clientOf("sdk-app", ["i1"]), i2: clientOf("sdk-app", ["i2"]) };
  operator = { i1: clientOf("operator-ada", ["i1"]), i2: clientOf("operator-ada", ["i2"]) };
  const [i1, i2] = await Promise.all(
    BOTH.map(async (id) => (await operator[id].coordinators.leader()).self.backendHash),
  );
  hashes = { i1: i1!, i2: i2! };
}, ISLANDS_MS_MAX * 2);

afterAll(() => islands?.end());

function clientOf(name: string, ids: readonly Island[]): Client {
  const text = (file: string): string => readFileSync(join(islands.directory, "people", file), "utf8");
  const tls = { ca: text("ca.crt"), cert: text(`${name}.crt`), key: text(`${name}.key`) };
  return createClient({ urls: ids.map((id) => islands.node(id).url), fetch: certificateFetch(tls), timeoutMs: 30_000 });
}

async function jobsOf(id: Island, kind: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const job of operator[id].jobs({ kind: [kind] } as object)) ids.push(job.id);
  return ids;
}

function done<T extends { readonly state: string }>(outcome: T): Extract<T, { readonly state: "committed" }> {
  if (outcome.state !== "committed") throw new Error(JSON.stringify(outcome));
  return outcome as Extract<T, { readonly state: "committed" }>;
}

function moved(epoch: number, version: number) {
  const collect = (t: Parameters<Parameters<Client["transaction"]>[0]>[0]) => {
    t.require(islands.node("i1").url, "orders", epoch);
    t.on(hashes.i1).release("orders", epoch);
    const deleted = t.on(hashes.i1).delete("orders/cursor", { ifVersion: version });
    const there = t.on(islands.node("i2").url);
    const cursor = there.put("orders/cursor", 7, { ifVersion: 0 });
    const held = there.acquire("orders", { session: "s2", identity: "there", ttlMs: 60_000 });
    const job = there.submit({ kind: "move", payload: { next: 8 } });
    return { deleted, cursor, held, job };
  };
  // What one that was rolled back has locked is released when its islands have asked home: until then the next one meets it.
  return decider.transaction(collect, { attempts: 20 });
}

describe("client.transaction", () => {
  it(
    "moves a scope, a value and a job from one island to the other, named by URL, and gives what each has become",
    async () => {
      const hold = { scope: "orders", session: "s1", identity: "here", ttlMs: 60_000, waitMs: 0 };
      // Before the grant: an epoch is a place in the log, and one below the first one is none.
      const { version } = await at.i1.values.put("orders/cursor", 7);
      const grant = await at.i1.scopes.acquire(hold);
      if (!grant.granted) throw new Error("not granted");
      const stale = await moved(grant.epoch - 1, version);
      expect(stale).toMatchObject({ state: "rolled-back", reason: { code: "STALE_EPOCH" } });
      expect([(await at.i1.values.get("orders/cursor"))?.value, await at.i2.values.get("orders/cursor")]).toEqual([
        7,
        null,
      ]);

      const outcome = done(await moved(grant.epoch, version));
      const { deleted, cursor, held, job } = outcome.result;
      expect(outcome.participants.map(({ state }) => state)).toEqual(["applied", "applied"]);
      expect(deleted.version).toBeGreaterThan(version);
      expect(await at.i1.values.get("orders/cursor")).toBeNull();
      expect(await at.i2.values.get("orders/cursor")).toMatchObject({ value: 7, version: cursor.version });
      expect((await at.i1.scopes.get("orders")).holder).toBeNull();
      expect(await at.i2.scopes.get("orders")).toMatchObject({ epoch: held.epoch, holder: { identity: "there" } });
      await waitFor("the job", async () => (await jobsOf("i2", "move")).length > 0);
      expect(await jobsOf("i2", "move")).toEqual([job.jobId]);
      expect(await operator.i2.job(job.jobId ?? "")).toMatchObject({
        state: "pending",
        spec: { payload: { next: 8 } },
      });
    },
    ISLANDS_MS_MAX,
  );

  it(
    "with the same id is done once, however often it is run; another content under it is refused",
    async () => {
      const request: TransactionRequest = {
        id: newTransactionId(),
        participants: BOTH.map((id) => ({
          backendHash: hashes[id],
          operations: [
            { op: "value.put", name: "twice", value: id },
            { op: "job.submit", job: { kind: "once" } },
          ],
        })),
      };
      const runs = await Promise.all(Array.from({ length: 4 }, () => decider.transactions.run(request)));
      const again = await decider.transactions.run(request);
      const results = [...runs, again].map((one) => done(one).participants.map(({ results: all }) => all));
      for (const one of results) expect(one).toEqual(results[0]);
      const other = { ...request, participants: request.participants.slice(0, 1) };
      await expect(decider.transactions.run(other)).rejects.toMatchObject({ code: "txn_conflict" });
      for (const id of BOTH) {
        await waitFor("its job", async () => (await jobsOf(id, "once")).length > 0);
        expect(await jobsOf(id, "once")).toHaveLength(1);
      }
    },
    ISLANDS_MS_MAX,
  );

  it(
    "of many who write the same values has each committed or rolled back, and loses none",
    async () => {
      for (const id of BOTH) await at[id].values.put("sum", 0);
      const add = () =>
        decider.transaction(
          async (t) => {
            for (const id of BOTH) {
              const before = await at[id].values.get("sum");
              t.on(hashes[id]).put("sum", Number(before?.value) + 1, { ifVersion: before?.version });
            }
          },
          { attempts: 20 },
        );
      const outcomes = await Promise.all(Array.from({ length: 12 }, add));
      const committed = outcomes.filter(({ state }) => state === "committed").length;
      expect(committed).toBeGreaterThan(0);
      for (const one of outcomes)
        if (one.state !== "committed")
          expect(one).toMatchObject({
            reason: { code: expect.stringMatching(/VERSION_CONFLICT|txn_locked/) as string },
          });
      for (const id of BOTH) expect((await at[id].values.get("sum"))?.value).toBe(committed);
    },
    ISLANDS_MS_MAX,
  );

  it(
    "is shown by each island that takes part, and is settled soon",
    async () => {
      const { id } = done(await decider.transaction((t) => BOTH.map((one) => t.on(hashes[one]).put("shown", 1))));
      for (const one of BOTH) {
        await waitFor(
          "a settled transaction",
          async () => (await operator[one].transactions.get(id))?.isSettled === true,
        );
        expect(await operator[one].transactions.get(id)).toMatchObject({
          id,
          state: "committed",
          isInDoubt: false,
          by: expect.stringContaining("app") as string,
        });
        const listed: string[] = [];
        for await (const view of operator[one].transactions.list()) listed.push(view.id);
        expect(listed).toContain(id);
        for await (const view of operator[one].transactions.list({ inDoubt: true }))
          throw new Error(JSON.stringify(view));
      }
      expect(await operator.i1.transactions.get(newTransactionId())).toBeNull();
      expect(await operator.i1.transactions.replay(id)).toBe("committed");
    },
    ISLANDS_MS_MAX,
  );
});

describe("tenure txn", () => {
  it(
    "runs a file, says what became of it, and shows it",
    async () => {
      const id = newTransactionId();
      const participants = BOTH.map((one) => ({
        backend_hash: hashes[one],
        operations: [{ op: "value.put", name: "by-file", value: { someKey: one }, if_version: 0 }],
      }));
      writeFileSync(join(islands.directory, "txn.json"), JSON.stringify({ participants }));
      const as = (who: string) => ({
        TENURE_SERVERS_CERT_FILE: `people/${who}.crt`,
        TENURE_SERVERS_KEY_FILE: `people/${who}.key`,
      });
      const url = `--url ${islands.node("i2").url}`;
      const first = await islands.run(`tenure txn run txn.json --id ${id} -o json ${url}`, as("tc-app"));
      expect(first, first.stderr).toMatchObject({ code: 0 });
      expect(JSON.parse(first.stdout)).toMatchObject({ txn_id: id, state: "committed" });
      const other = await islands.run(`tenure txn run txn.json ${url}`, as("tc-app"));
      expect(other.code).toBe(69);
      expect(other.stderr).toMatch(/was rolled back, and nothing of it was done: VERSION_CONFLICT/);
      const shown = await islands.run(`tenure txn show ${id} ${url}`, as("operator-ada"));
      expect(shown.stdout).toMatch(/^state +committed/m);
      const list = await islands.run(`tenure txn list --in-doubt ${url}`, as("operator-ada"));
      expect(list).toMatchObject({ code: 0, stdout: "no transactions\n" });
      const unable = await islands.run(`tenure txn run txn.json ${url}`, as("operator-ada"));
      expect(unable).toMatchObject({ code: 77, stdout: "" });
      expect((await at.i1.values.get("by-file"))?.value).toEqual({ someKey: "i1" });
    },
    ISLANDS_MS_MAX,
  );
});
