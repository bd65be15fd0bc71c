import { describe, expect, it } from "vitest";
import type { HistoryVerdict } from "../../client/history.ts";
import type { NodeAnswer } from "../../client/index.ts";
import { TenureError } from "../../contract/errors.ts";
import { compareNodes, problemOf, verifyNodes } from "./verify.ts";
import { verifyNotes, verifyObject, verifyText } from "./verify-view.ts";
import { answers, viewOf } from "../cluster/test-cluster.ts";

const options = { signal: new AbortController().signal };
const urlOf = (at: number): string => asked[at]?.url ?? "";
const asked = answers(viewOf("n1"), viewOf("n2"), viewOf("n3"));
const down: NodeAnswer = { url: "http://down", view: null, why: "connection refused", code: null };

const whole = (through: number, root: string): HistoryVerdict => ({
  valid: true,
  firstSequence: 1,
  throughSequence: through,
  headHash: through === 0 ? null : `head-${root}`.padEnd(64, "0"),
  root: root.padEnd(64, "0"),
});
const broken: HistoryVerdict = { valid: false, firstSequence: 1, firstBrokenSequence: 4, reason: "another\u0007 byte" };

/** The verdict of each node in turn, and the root that it has for a number of events. */
function look(
  verdicts: readonly (HistoryVerdict | TenureError)[],
  roots: Readonly<Record<string, string | TenureError>> = {},
  nodes: readonly NodeAnswer[] = asked.slice(0, verdicts.length),
) {
  const questions: string[] = [];
  const history = {
    verify: async (url: string) => {
      const verdict = verdicts[nodes.findIndex((node) => node.url === url)];
      if (verdict === undefined || TenureError.is(verdict)) throw verdict ?? new Error(url);
      return verdict;
    },
    root: async (url: string, size: number) => {
      const name = `n${asked.findIndex((node) => node.url === url) + 1}@${size}`;
      questions.push(name);
      const root = roots[name];
      if (typeof root !== "string") throw root ?? new Error(name);
      return root.padEnd(64, "0");
    },
  };
  return async () => {
    const found = await verifyNodes(nodes, history, options);
    const difference = await compareNodes(found, history, options);
    const problem = problemOf(found, difference);
    return { found, difference, problem, questions, object: verifyObject(found, difference, problem) };
  };
}

describe("the nodes' histories", () => {
  it("are the same where each that is longer has the shorter one's root at its end", async () => {
    const { problem, questions, object, found, difference } = await look(
      [whole(7, "c"), whole(5, "b"), whole(7, "c")],
      {
        "n1@5": "b",
      },
    )();
    expect(problem).toBeNull();
    expect(questions).toEqual(["n1@5"]);
    expect(object).toMatchObject({ whole: true, agree: true, problem: null });
    expect(object.nodes[1]).toEqual({
      node_id: "n2",
      url: urlOf(1),
      valid: true,
      events: 5,
      first_sequence: 1,
      through_sequence: 5,
      head_hash: "head-b".padEnd(64, "0"),
      root: "b".padEnd(64, "0"),
      first_broken_sequence: null,
      reason: null,
      error: null,
    });
    expect(verifyText(found, difference)).toBe(
      [
        "NODE  HISTORY  EVENTS  HEAD              ROOT              WHY\n",
        "n1    whole    1…7     head-c0000000000  c000000000000000\n",
        "n2    whole    1…5     head-b0000000000  b000000000000000\n",
        "n3    whole    1…7     head-c0000000000  c000000000000000\n",
        "they are the same, as far as each goes\n",
      ].join(""),
    );
  });

  it("differ where the roots do, of the same length or not", async () => {
    const one = await look([whole(7, "c"), whole(7, "d")])();
    expect(one.problem).toMatchObject({ code: "CHAIN_BROKEN" });
    expect(one.problem?.message).toBe("n1 and n2 differ in their first 7 events. Keep both data directories.");
    expect(one.object).toMatchObject({ whole: false, agree: false });
    expect(verifyText(one.found, one.difference)).toMatch(/\nthey are not the same\n$/);
    const other = await look([whole(7, "c"), whole(5, "b")], { "n1@5": "x" })();
    expect(other.problem?.message).toMatch(/^n2 and n1 differ in their first 5 events/);
  });

  it("that are broken are named with the first wrong sequence, whatever else is to be said", async () => {
    const busy = new TenureError("OVERLOADED", "it verifies already");
    const { problem, found, difference, object } = await look([busy, broken, whole(7, "c")])();
    expect(problem).toMatchObject({ code: "CHAIN_BROKEN" });
    expect(problem?.message).toMatch(/^the history is broken: n2 at sequence 4: another/);
    expect(object.nodes[1]).toMatchObject({ valid: false, first_broken_sequence: 4, events: null, root: null });
    expect(verifyText(found, difference)).toContain(
      "n2    broken   1…      -                 -                 at sequence 4: another? byte\n",
    );
  });

  it("that were not verified are not called whole", async () => {
    const busy = new TenureError("OVERLOADED", "it verifies already");
    const { problem, object } = await look([whole(7, "c"), busy])();
    expect(problem).toMatchObject({ code: "OVERLOADED", message: "n2 was not verified: it verifies already" });
    expect(object).toMatchObject({ whole: false, agree: null });
    const gone = new TenureError("LOG_COMPACTED", "not kept");
    const compared = await look([whole(7, "c"), whole(5, "b")], { "n1@5": gone })();
    expect(compared.problem).toMatchObject({
      code: "LOG_COMPACTED",
      message: "n2 and n1 could not be compared: not kept",
    });
    expect(compared.object.agree).toBeNull();
  });

  it("of nodes that are down are left out, and told; of all of them there is no verdict", async () => {
    const some = await look([whole(7, "c")], {}, [asked[0]!, down])();
    expect(some.problem).toBeNull();
    expect(some.object).toMatchObject({ whole: true, agree: null });
    expect(verifyText(some.found, some.difference)).toMatch(
      /^http:\/\/down  \?        -       -                 -                 connection refused$/m,
    );
    expect(verifyNotes([asked[0]!, down])).toEqual(["without http://down: connection refused"]);
    const none = await look([], {}, [down])();
    expect(none.problem).toMatchObject({
      code: "BACKEND_UNAVAILABLE",
      message: "no server answers: http://down: connection refused.",
    });
  });

  it("without any event are whole, and nothing is compared", async () => {
    const { problem, questions, found, difference } = await look([whole(0, "e"), whole(3, "c")])();
    expect(problem).toBeNull();
    expect(questions).toEqual([]);
    expect(verifyText(found, difference)).toMatch(/^n1    whole    none    -                 e0/m);
  });

  it("of members that tell no URL are missing, once", () => {
    const [member] = viewOf("n1").members;
    const view = viewOf("n1", { members: [member!, { ...member!, nodeId: "n9", url: null }] });
    expect(verifyNotes(answers(view, view))).toEqual(["without n9, which tells no URL: set api.advertise there"]);
  });
});
