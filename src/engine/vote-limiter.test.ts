import { expect, test } from "vitest";
import { peerKey } from "../core/kit/ids.ts";
import { VOTE_REQUESTS_BURST_MAX, VOTE_REQUESTS_PER_S_MAX } from "../core/kit/limits.ts";
import { VoteLimiter } from "./vote-limiter.ts";

const [n1, n2] = [peerKey("n1", "a"), peerKey("n2", "a")];

function admitted(limiter: VoteLimiter, peer: typeof n1, count: number, atMs: number): number {
  return Array.from({ length: count }).filter(() => limiter.admits(peer, atMs)).length;
}

test("one peer's requests for votes are limited, and nobody else's with them", () => {
  const limiter = new VoteLimiter();
  expect(admitted(limiter, n1, 1_000, 0)).toBe(VOTE_REQUESTS_BURST_MAX);
  expect(admitted(limiter, n2, 5, 0)).toBe(5);
  expect(admitted(limiter, n1, 1_000, 1_000), "a second later").toBe(VOTE_REQUESTS_PER_S_MAX);
});
