import { describe, expect, test } from "vitest";
import { QUERIES_PENDING_MAX, QUERY_MS_MAX } from "./limits.ts";
import { decodeQuery, encodeAnswer, Questions } from "./questions.ts";

function asking() {
  const counts = { askedQueries: 0, unansweredQueries: 0 };
  const sent: Uint8Array[] = [];
  const questions = new Questions((payload) => sent.push(payload) > 0, counts);
  const numberOf = (at: number): number => decodeQuery(sent[at]!)!.number;
  return { questions, counts, sent, numberOf };
}

describe("questions to a peer", () => {
  test("each gets its own answer, in whatever order they come", async () => {
    const { questions, sent, numberOf } = asking();
    const [one, two, three] = [1, 2, 3].map((n) => questions.ask(Uint8Array.of(n)));
    expect(sent.map((payload) => [...decodeQuery(payload)!.query])).toEqual([[1], [2], [3]]);
    expect(questions.take(encodeAnswer(numberOf(2), Uint8Array.of(33)))).toBeNull();
    expect(questions.take(encodeAnswer(numberOf(0), null))).toBeNull();
    expect(questions.take(encodeAnswer(numberOf(1), new Uint8Array(0)))).toBeNull();
    expect([await one, await two, await three]).toEqual([null, new Uint8Array(0), Uint8Array.of(33)]);
  });

  test("no more than the bound wait; the next one is told nothing at once, and nothing is sent for it", async () => {
    const { questions, sent, counts } = asking();
    for (let i = 0; i < QUERIES_PENDING_MAX; i++) void questions.ask(Uint8Array.of(i));
    expect(await questions.ask(Uint8Array.of(99))).toBeNull();
    expect(sent).toHaveLength(QUERIES_PENDING_MAX);
    expect(counts).toEqual({ askedQueries: QUERIES_PENDING_MAX, unansweredQueries: 0 });
  });

  test("what is asked for too long is given up, makes room, and its late answer is dropped", async () => {
    const { questions, counts, numberOf } = asking();
    const late = questions.ask(Uint8Array.of(1));
    questions.tick(performance.now() + QUERY_MS_MAX - 1_000);
    expect(counts.unansweredQueries).toBe(0);
    questions.tick(performance.now() + QUERY_MS_MAX + 1_000);
    expect(await late).toBeNull();
    expect(counts.unansweredQueries).toBe(1);
    expect(questions.take(encodeAnswer(numberOf(0), Uint8Array.of(1)))).toBeNull();
    const next = questions.ask(Uint8Array.of(2));
    expect(questions.take(encodeAnswer(numberOf(1), Uint8Array.of(2)))).toBeNull();
    expect(await next).toEqual(Uint8Array.of(2));
  });

  test("the end of the connection answers all of them, and nothing is asked behind it", async () => {
    const { questions, sent } = asking();
    const open = [questions.ask(Uint8Array.of(1)), questions.ask(Uint8Array.of(2))];
    questions.end();
    expect(await Promise.all(open)).toEqual([null, null]);
    expect(await questions.ask(Uint8Array.of(3))).toBeNull();
    expect(sent).toHaveLength(2);
  });

  test("an answer that can't be read is a fault, and settles nothing", async () => {
    const { questions, counts, numberOf } = asking();
    const open = questions.ask(Uint8Array.of(1));
    const number = [0, 0, 0, numberOf(0)];
    for (const bytes of [[], [0], number, [...number, 2], [...number, 0, 7]]) {
      expect(questions.take(Uint8Array.from(bytes))).toMatchObject({ reason: "garbage" });
    }
    questions.end();
    expect(await open).toBeNull();
    expect(counts.unansweredQueries).toBe(1);
  });
});
