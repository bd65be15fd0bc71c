// docs/reference/metrics.md, tenure/prometheus and a server's registry list the same metrics, with the same types and labels.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { HealthzAnswer } from "../src/contract/answers.ts";
import { createMetrics } from "../src/drivers/telemetry/index.ts";
import { createElector } from "../src/entry/index.ts";
import { prometheusText } from "../src/entry/prometheus.ts";
import { testBackend } from "../src/entry/testing.ts";
import { sourceOf } from "./api/test-metrics.ts";

interface Row {
  readonly type: string;
  readonly labels: readonly string[];
}

const ROW = /^\| `(\w+)` \| (counter|gauge|histogram) \| ((?:`\w+`(?:, )?)+|–) \| (.*) \| (.*) \|$/;

/** The page has one table for electors, and one for a server. */
function tables(markdown: string): { electors: string; server: string; alerts: string } {
  const [electors = "", server = "", alerts = ""] = markdown.split(/^## A server|^## Alerts of the nodes/m);
  expect(server, "docs/reference/metrics.md has no section on a server").not.toBe("");
  expect(alerts, "docs/reference/metrics.md has no section on alerts").not.toBe("");
  return { electors, server, alerts };
}

function documented(markdown: string): Record<string, Row> {
  const rows: Record<string, Row> = {};
  for (const line of markdown.split("\n").filter((one) => one.startsWith("| `"))) {
    const [, name = "", type = "", labels = "", meaning = ""] = ROW.exec(line) ?? [];
    expect(meaning.length, `a row of docs/reference/metrics.md is not in the table's form: ${line}`).toBeGreaterThan(
      20,
    );
    expect(rows, `docs/reference/metrics.md lists ${name} twice`).not.toHaveProperty(name);
    rows[name] = { type, labels: [...labels.matchAll(/\w+/g)].map(([label]) => label) };
  }
  return rows;
}

function shown(text: string): Record<string, Row> {
  const rows: Record<string, Row> = {};
  for (const [, name = "", type = ""] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    const sample = new RegExp(`^${name}(?:_bucket)?(?:{(.*)})? [\\d.]+$`, "m").exec(text);
    expect(sample, `${name} has no sample`).not.toBeNull();
    const labels = [...(sample?.[1] ?? "").matchAll(/(\w+)="/g)]
      .map(([, label = ""]) => label)
      .filter((label) => label !== "le");
    rows[name] = { type, labels };
  }
  return rows;
}

/** From an elector that has led, lost an effect to its gate and leads again, so that every metric has a sample. */
async function scrape(): Promise<string> {
  const backend = testBackend();
  await using elector = createElector({ scope: "payer", backend });
  expect(() => elector.gate.requireLeader({ effect: "pay" })).toThrow();
  await elector.acquire();
  await backend.advance(backend.timing.heartbeatMs * 2);
  return prometheusText([elector]);
}

it("docs/reference/metrics.md lists every metric as it is, and no other", async () => {
  const rows = shown(await scrape());
  expect(Object.keys(rows)).toHaveLength(10);
  expect(documented(tables(readFileSync("docs/reference/metrics.md", "utf8")).electors)).toEqual(rows);
});

it("docs/reference/metrics.md lists every metric of a server as it is, and no other", async () => {
  const { text } = await createMetrics(() => sourceOf({})).scrape();
  const ours = text
    .split("\n")
    .filter((line) => /^(# TYPE )?tenure_/.test(line))
    .join("\n");
  const rows = shown(ours);
  expect(Object.keys(rows).length).toBeGreaterThan(30);
  expect(documented(tables(readFileSync("docs/reference/metrics.md", "utf8")).server)).toEqual(rows);
});

it("docs/reference/metrics.md lists every alert that a node can raise, and no other", () => {
  const { alerts } = tables(readFileSync("docs/reference/metrics.md", "utf8"));
  const named = [...alerts.matchAll(/^\| `(\w+)` \| (?:warning|critical) \| /gm)].map(([, name = ""]) => name);
  const schema = JSON.stringify(HealthzAnswer.properties.alerts.items.properties.name);
  const raised = [...schema.matchAll(/"([a-z]+_[a-z_]+)"/g)].map(([, name = ""]) => name);
  expect(raised).toContain("loop_stalled");
  expect(named.toSorted()).toEqual(raised.toSorted());
});

it("the comparison sees a missing, an invented and a changed metric", async () => {
  const markdown = tables(readFileSync("docs/reference/metrics.md", "utf8")).electors;
  const rows = shown(await scrape());
  const row = "| `tenure_leader_epoch` | gauge | `scope` |";
  expect(markdown).toContain(row);
  const without = markdown.split("\n").filter((line) => !line.startsWith(row));
  expect(documented(without.join("\n"))).not.toEqual(rows);
  expect(documented(markdown.replace("`tenure_leader_epoch`", "`tenure_leader_era`"))).not.toEqual(rows);
  expect(documented(markdown.replace(row, row.replace("gauge", "counter")))).not.toEqual(rows);
  expect(documented(markdown.replace(row, row.replace("`scope`", "`scope`, `epoch`")))).not.toEqual(rows);
});

it("a leader's heartbeats are measured", async () => {
  const text = await scrape();
  expect(text).toMatch(/^tenure_heartbeat_update_ms_count\{scope="payer"\} [1-9]/m);
  expect(text).toMatch(/^tenure_deadline_slack_ms_count\{scope="payer"\} [1-9]/m);
  expect(text).toMatch(/^tenure_acquire_latency_ms_count\{scope="payer"\} 1$/m);
  expect(text).toMatch(/^tenure_effects_blocked_not_leader_total\{scope="payer",effect="pay"\} 1$/m);
});
