// Holes that a reviewer found by reading, each with the schedule that shows it.

import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { INTRODUCED_MAX } from "../kit/limits.ts";
import { RaftLog } from "./log.ts";
import { Outbox } from "./outbox.ts";
import { TestCluster } from "./test-cluster.ts";
import { entriesOf, heartbeat, peersNamed } from "./test-messages.ts";

const [A, B, C] = peersNamed(3) as [PeerKey, PeerKey, PeerKey];

describe("the commit index on disk", () => {
  test("never covers the entries of its own write, which a crash may tear off behind it", () => {
    const log = new RaftLog(null, entriesOf([2, 2], 1));
    const outbox = new Outbox({ term: 2, vote: null, commit: 0 });
    log.tryAppend(0, 0, entriesOf([3, 3], 1));
    log.commitTo(2);
    expect(outbox.takePersist(log, 3, null, 0)).toMatchObject({ hardState: { term: 3, commit: 0 } });
    log.append(entriesOf([3], 3));
    expect(outbox.takePersist(log, 3, null, 0), "the next write may vouch for them").toMatchObject({
      hardState: { term: 3, commit: 2 },
    });
  });
});

describe("a transfer", () => {
  test("ends when its target falls silent while it catches up, so that a lost disk can be replaced (D4, D5)", () => {
    const cluster = new TestCluster({ voters: [A, B, C], election: { transferTimeoutMs: 30_000 } });
    cluster.elect(A);
    const heal = cluster.isolate(C);
    for (let at = 0; at < 100; at++) cluster.propose(A, "more than a hand-over waits for");
    expect(cluster.act(A, { kind: "transfer", target: C, force: false }).ok).toBe(true);
    cluster.advance(1_000);
    const results = cluster.node(A).events.flatMap((event) => (event.kind === "transfer" ? [event.result] : []));
    expect(results).toMatchObject([{ success: false, newLeaderId: A }]);
    heal();
  });
});

describe("admission", () => {
  test("hears a voter whose connection lives although another disk shook hands in its name", () => {
    const cluster = new TestCluster({ voters: [A, B], running: [] });
    cluster.start(A);
    const [old, fresh] = [peerKey("d", "1"), peerKey("d", "2")];
    for (const peer of [old, fresh]) cluster.act(A, { kind: "peer-seen", peer });
    expect(cluster.receive(heartbeat([old, A, 5])).ok).toBe(true);
    expect(cluster.receive(heartbeat([fresh, A, 6])).ok).toBe(true);
    expect(cluster.receive(heartbeat([peerKey("d", "3"), A, 7]))).toMatchObject({ code: "MESSAGE_REFUSED" });
  });

  test("forgets the peer that was introduced longest ago when there are too many", () => {
    const cluster = new TestCluster({ voters: [A, B], running: [] });
    cluster.start(A);
    const strangers = Array.from({ length: INTRODUCED_MAX + 1 }, (_, at) => peerKey(`s${at}`, "1"));
    for (const peer of strangers) cluster.act(A, { kind: "peer-seen", peer });
    expect(cluster.receive(heartbeat([strangers[0]!, A, 5])).ok).toBe(false);
    expect(cluster.receive(heartbeat([strangers[1]!, A, 5])).ok).toBe(true);
  });
});

describe("a requested replacement", () => {
  test("ends when the disk that it named is lost in its turn, and the next one takes its place", () => {
    const cluster = new TestCluster({ voters: [A, B, C] });
    cluster.elect(A);
    const [second, third] = [peerKey("n3", "2"), peerKey("n3", "3")];
    cluster.act(A, { kind: "peer-seen", peer: second });
    expect(cluster.act(A, { kind: "replace", nodeId: "n3" }).ok).toBe(true);
    cluster.isolate(C);
    // The second disk becomes a learner and never answers; the third one dials.
    cluster.advance(3_000);
    expect(cluster.status(A).configuration.learners).toEqual([second]);
    cluster.act(A, { kind: "peer-seen", peer: third });
    cluster.advance(3_000);
    expect(cluster.status(A).configuration.learners).toContain(third);
  });
});
