// `npm run bench`: what the codec of the wire and the log costs, next to JSON and V8's own serialiser in the same run,
// as a ratio. The sides take turns, so that a busy machine slows both; the median of the rounds counts. (What a
// cluster does next to etcd is measured once there are servers to measure.)

import { deserialize, serialize } from "node:v8";
import { peerKey } from "../src/core/kit/ids.ts";
import { decodeMessage, encodeMessage, type Message } from "../src/core/raft/index.ts";

const ROUNDS = 9;
const BATCH = 64;
const PAYLOAD = new Uint8Array(128).fill(7);

interface Result {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  readonly peer: string;
  readonly theirs: number;
  readonly ratio: number;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

/** Times each side per round, in turns; returns how often each can be done in a second. */
function compare(
  name: string,
  unit: string,
  count: number,
  ours: () => void,
  peer: string,
  theirs: () => void,
): Result {
  const times: [number[], number[]] = [[], []];
  for (let round = -2; round < ROUNDS; round++) {
    for (const [side, work] of [ours, theirs].entries()) {
      const startedMs = performance.now();
      work();
      if (round >= 0) times[side as 0 | 1].push(performance.now() - startedMs);
    }
  }
  const perSecond = (side: 0 | 1): number => Math.round((count * 1_000) / median(times[side]));
  const [mine, others] = [perSecond(0), perSecond(1)];
  return { name, unit, ours: mine, peer, theirs: others, ratio: Number((mine / others).toFixed(3)) };
}

function appendMessage(): Message {
  const [from, to] = [peerKey("n1", "a1"), peerKey("n2", "a1")];
  const entries = Array.from({ length: BATCH }, (_, at) => ({
    term: 3,
    index: 11 + at,
    type: "EntryNormal" as const,
    data: PAYLOAD,
  }));
  return { type: "MsgApp", from, to, term: 3, index: 10, logTerm: 3, entries, commit: 10, round: 5 };
}

function codecBenches(): Result[] {
  const message = appendMessage();
  const times = 2_000;
  const ours = (): void => {
    for (let at = 0; at < times; at++)
      if (!decodeMessage(encodeMessage(message, "bench"), "bench").ok) throw new Error("codec");
  };
  const asJson = JSON.stringify(message, (_key, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  );
  return [
    compare("codec", "appends of 64 × 128 B encoded and decoded a second", times, ours, "JSON with base64", () => {
      for (let at = 0; at < times; at++) JSON.parse(JSON.stringify(JSON.parse(asJson)));
    }),
    compare("codec", "appends of 64 × 128 B encoded and decoded a second", times, ours, "v8.serialize", () => {
      for (let at = 0; at < times; at++) deserialize(serialize(message));
    }),
  ];
}

const results = codecBenches();
for (const { name, unit, ours, peer, theirs, ratio } of results) {
  console.log(
    `${name.padEnd(10)} ${ours.toLocaleString("en-US").padStart(12)} ${unit}; ${peer}: ${theirs.toLocaleString("en-US")}; ratio ${ratio}`,
  );
}
if (process.argv.includes("--json")) console.log(JSON.stringify({ node: process.version, rounds: ROUNDS, results }));
