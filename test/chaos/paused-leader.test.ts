// An old leader that is paused with SIGSTOP past its term, and continued, commits nothing: with a request that is provably
// inside of it, at three places on its way. Three server processes on their own consensus.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  OPERATOR_KEY as key,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { auditNodes } from "./jobs-audit.ts";
import { STEADY_ELECTION } from "./jobs-stage.ts";
import { type RawAnswer, RawRequest } from "./raw-request.ts";
import { isStopped } from "./stopped.ts";

/** What a leader that is none any more may say. None of them says that it was done. */
const NOT_DONE = ["NOT_LEADER", "ERR_NO_LEADER", "OUTCOME_UNKNOWN", "STALE_EPOCH"];
/** Far below an election timeout: it is still the leader when it is stopped. */
const DECIDED_MS = 40;

interface Lease {
  readonly job_id: string;
  readonly job_epoch: number;
  readonly lease_id: string;
  readonly leader_epoch: number;
}

describe.skipIf(process.platform !== "linux")(
  "a leader that was stopped past its term commits nothing (Linux: /proc)",
  () => {
    let cluster: TenureCluster;

    beforeAll(async () => {
      cluster = await startTenureCluster({ election: STEADY_ELECTION });
    }, 120_000);

    afterAll(() => cluster?.end());

    async function leader(not?: string): Promise<TenureNode> {
      return cluster.node(await cluster.waitForLeader(not));
    }

    async function submitting(node: TenureNode, idempotencyKey: string, tag: string): Promise<RawRequest> {
      const headers = { "x-api-key": key, "idempotency-key": idempotencyKey };
      const request = await RawRequest.open(node, "/v1/jobs", bodyOf(tag), headers);
      onTestFinished(() => request.end());
      return request;
    }

    async function stop(node: TenureNode): Promise<void> {
      onTestFinished(() => node.cont());
      node.stop();
      await waitFor(`${node.id} to be stopped`, () => isStopped(node.pid));
    }

    /** Somebody else leads, and has committed something. */
    async function deposed(old: TenureNode): Promise<TenureNode> {
      const next = await leader(old.id);
      await waitFor("the next leader to commit", async () => {
        const { status } = await next.call("/v1/jobs", { key, body: bodyOf(`next-${randomUUID()}`) });
        return status === 200;
      });
      return next;
    }

    /** How many jobs with this tag each node's log has. */
    async function found(tag: string): Promise<number[]> {
      await cluster.steady();
      const audits = await auditNodes(cluster.nodes);
      expect(new Set(audits.map(({ sha256 }) => sha256)).size, "all nodes serve the same events").toBe(1);
      expect(audits.map(({ verdict }) => verdict.valid)).toEqual([true, true, true]);
      return audits.map(({ events }) => events.filter(({ payload }) => tagOf(payload) === tag).length);
    }

    /** Under the same key at the new leader: whatever became of the first, it is there once. */
    async function onceUnder(idempotencyKey: string, tag: string): Promise<void> {
      const ids = new Set<unknown>();
      for (let times = 0; times < 2; times++) {
        const again = await submitting(await leader(), idempotencyKey, tag);
        again.send();
        const { status, body } = await again.answer();
        expect(status).toBe(200);
        ids.add(body["id"]);
      }
      expect(ids.size, "one job for one key").toBe(1);
      expect(await found(tag)).toEqual([1, 1, 1]);
    }

    function expectNotDone({ status, body }: RawAnswer): void {
      expect(status).not.toBe(200);
      expect(NOT_DONE).toContain(body["error"]);
    }

    test("whole requests in its socket: a submission and a result", async () => {
      const old = await leader();
      const [kind, session, tag, idempotencyKey] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
      const lease = await leased(old, kind, session);
      const submission = await submitting(old, idempotencyKey, tag);
      const result = await RawRequest.open(old, "/v1/results", resultOf(lease, session), { "x-api-key": key });
      onTestFinished(() => result.end());
      await stop(old);
      submission.send();
      result.send();
      await waitFor(
        "the kernel to have both",
        () => submission.unread() === submission.bytes && result.unread() === result.bytes,
      );
      await deposed(old);
      expect(submission.unread(), "still inside, unread").toBe(submission.bytes);
      old.cont();
      expectNotDone(await submission.answer());
      expectNotDone(await result.answer());
      expect(await found(tag)).toEqual([0, 0, 0]);
      const path = `/v1/jobs/${lease.job_id}?consistency=linearizable`;
      const { body } = await (await leader()).call<{ state: string; result: unknown }>(path, { key });
      expect(body, "the job is as it was").toMatchObject({ state: "assigned", result: null });
      await onceUnder(idempotencyKey, tag);
    });

    test("a request of which it has read the head and half of the body", async () => {
      const old = await leader();
      const [tag, idempotencyKey] = [randomUUID(), randomUUID()];
      const request = await submitting(old, idempotencyKey, tag);
      request.sendHalf();
      // Sent, and nothing of it is left in the queue: the process has it.
      await old.call("/role", { key });
      await waitFor("the leader to have read the half", () => request.unread() === 0);
      await stop(old);
      request.sendRest();
      await waitFor("the kernel to have the rest", () => (request.unread() ?? 0) > 0);
      await deposed(old);
      old.cont();
      expectNotDone(await request.answer());
      expect(await found(tag)).toEqual([0, 0, 0]);
      await onceUnder(idempotencyKey, tag);
    });

    test("a request that it has decided and could not commit, as its followers were gone", async () => {
      const old = await leader();
      const followers = cluster.nodes.filter((node) => node !== old);
      const [tag, idempotencyKey] = [randomUUID(), randomUUID()];
      const request = await submitting(old, idempotencyKey, tag);
      await Promise.all(followers.map((follower) => follower.kill9()));
      request.send();
      await waitFor("the leader to have read it", () => request.unread() === 0);
      await sleep(DECIDED_MS);
      await stop(old);
      expect(request.hasAnswer, "nothing was confirmed").toBe(false);
      for (const follower of followers) follower.start();
      await deposed(old);
      old.cont();
      expectNotDone(await request.answer());
      expect(await found(tag), "what only the old leader had is gone").toEqual([0, 0, 0]);
      await onceUnder(idempotencyKey, tag);
    });
  },
);

function bodyOf(tag: string): object {
  return { kind: "nobodys", payload: { tag } };
}

function tagOf({ spec }: { readonly spec?: { readonly payload: unknown } }): unknown {
  return (spec?.payload as { tag?: unknown } | undefined)?.tag;
}

async function leased(node: TenureNode, kind: string, session: string): Promise<Lease> {
  await node.call("/v1/jobs", { key, body: { kind } });
  const agent = { name: `agent-${session}`, session, kinds: [kind], platform: "linux", capacity: 1 };
  const body = { agent, max: 1, wait_ms: 5_000, ttl_ms: 60_000 };
  const answer = await node.call<{ leases: Lease[] }>("/v1/leases", { key, body });
  expect(answer.body.leases).toHaveLength(1);
  return answer.body.leases[0]!;
}

function resultOf({ job_id, job_epoch, lease_id, leader_epoch }: Lease, session: string): object {
  const one = { job_id, job_epoch, lease_id, leader_epoch, outcome: "completed", result: { by: session } };
  return { session, results: [one] };
}
