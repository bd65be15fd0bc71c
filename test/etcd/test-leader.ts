// A process that wants to lead one scope for as long as it lives, and says on its output what happens, a JSON object a
// line: each transition, and, when it was stopped and goes on, what its gate says first.
// Arguments: endpoint, scope, TTL in seconds.

import { etcd } from "../../src/entry/etcd.ts";
import { createElector } from "../../src/entry/index.ts";

const [endpoint = "", scope = "", ttlSeconds = "2"] = process.argv.slice(2);

function say(fields: object): void {
  process.stdout.write(`${JSON.stringify(fields)}\n`);
}

const elector = createElector({
  scope,
  backend: etcd({ endpoints: endpoint, ttlSeconds: Number(ttlSeconds) }),
  onTransition: (transition) => say(transition),
});

let lastMs = Date.now();
setInterval(() => {
  const gapMs = Date.now() - lastMs;
  lastMs = Date.now();
  if (gapMs > 1_000) say({ kind: "thawed", gapMs, isLeader: elector.gate.isLeader });
}, 10);

await elector.lead(
  (term) =>
    new Promise<void>((resolve) => {
      term.signal.addEventListener("abort", () => resolve());
    }),
);
