// A leader as a process of its own, so that it can be stopped in the middle: opens its epoch, appends one record after the
// other, and prints each answer as a line of JSON. Its first argument is the task.

import { bytes, logNode } from "./test-log-node.ts";

const { url, epoch } = JSON.parse(process.argv[2] ?? "{}") as { url: string; epoch: number };
const say = (line: Readonly<Record<string, unknown>>): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

const { log } = logNode(url, `writer-${epoch}`, { pollMs: 100 });
await log.start();
const opened = await log.open(epoch);
say({ said: opened.outcome });
let after = opened.outcome === "opened" ? opened.head.position : 0;
for (;;) {
  const text = `${epoch}-${after + 1}`;
  const answer = await log.append(epoch, after, [bytes(text)]).catch((error: unknown) => ({
    outcome: "rejected",
    error: String(error),
  }));
  say({ said: "answer", text, ...answer });
  if (answer.outcome !== "committed") break;
  after++;
}
await log.close();
