import { describe, expect, it } from "vitest";
import { drainObject, drainText, nodeIn, refuseLast } from "./drain.ts";
import { statusOf, statusText } from "./view.ts";
import { answers, viewOf } from "./test-cluster.ts";

const all = () => answers(viewOf("n1"), viewOf("n2"), viewOf("n3"));

describe("tenure cluster drain", () => {
  it("asks the node itself, and says what is wrong where it can't be asked", () => {
    expect(nodeIn(all(), "n2")).toMatchObject({ url: "http://127.0.0.1:7102", view: { nodeId: "n2" } });
    expect(() => nodeIn(all(), "n4")).toThrow('there is no node "n4"; did you mean n1 or n2 or n3?');
    expect(() => nodeIn(answers(viewOf("n1"), "refused", viewOf("n3")), "n2")).toThrow(
      "n2 does not answer at http://127.0.0.1:7102, and only itself can be told: refused.",
    );
    expect(() => nodeIn(answers("a", "b"), "n1")).toThrow("no server answers: http://127.0.0.1:7101: a; ");
  });

  it("is refused where nobody else is there who wants to lead, and says why of each", () => {
    expect(refuseLast(all(), "n1")).toBeUndefined();
    const some = answers(viewOf("n1"), viewOf("n2", { isDraining: true }), viewOf("n3"));
    expect(refuseLast(some, "n1")).toBeUndefined();
    expect(() => refuseLast(some, "n3")).not.toThrow();
    const none = answers(viewOf("n1"), viewOf("n2", { isDraining: true }), viewOf("n3", { isReady: false }));
    expect(() => refuseLast(none, "n1")).toThrow(
      "without n1 nobody would be there who wants to lead: n2 is drained, n3 is not ready. Mend that first, or use --force.",
    );
    expect(() => refuseLast(answers(viewOf("n1"), "gone", "gone"), "n1")).toThrow("n2 does not answer, n3 does not");
    const alone = viewOf("n1");
    expect(() => refuseLast(answers({ ...alone, members: alone.members.slice(0, 1) }), "n1")).toThrow("the only one");
  });

  it("says who leads now, and in what epoch", () => {
    const drained = { nodeId: "n1", isDraining: true, role: "STANDBY", leaderId: "n2", leaderEpoch: 8 } as const;
    expect(drainText(drained, true, 23)).toBe("n1 is drained: it handed over in 23ms, and n2 leads, epoch 8\n");
    expect(drainText(drained, false, 23)).toBe("n1 is drained: n2 leads, epoch 8\n");
    expect(drainText({ ...drained, leaderId: "n1" }, true, 1)).toMatch(/leads on until another can/);
    expect(drainText({ ...drained, isDraining: false }, false, 1)).toBe("n1 may lead again; n2 leads, epoch 8\n");
    expect(drainObject(drained, true, 22.6)).toEqual({
      node_id: "n1",
      draining: true,
      led: true,
      leader: "n2",
      epoch: 8,
      took_ms: 23,
    });
  });

  it("is shown in status", () => {
    const text = statusText(statusOf(answers(viewOf("n1"), viewOf("n2", { isDraining: true }), viewOf("n3"))));
    expect(text).toMatch(/^n2 +\S+ +voter +draining +ok +0 /m);
    expect(text).toContain("n2 is drained: it leads only where nobody else can (tenure cluster drain n2 --undo)");
  });
});
