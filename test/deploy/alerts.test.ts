// deploy/prometheus and deploy/grafana ask only for metrics and labels that exist, and every alert leads to a runbook that exists
// and knows it. What fires when is in deploy/prometheus/rules.test.yaml, which promtool.test.ts runs.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { createMetrics } from "../../src/drivers/telemetry/index.ts";
import { createElector } from "../../src/entry/index.ts";
import { prometheusText } from "../../src/entry/prometheus.ts";
import { testBackend } from "../../src/entry/testing.ts";
import { sourceOf } from "../api/test-metrics.ts";
import { knownMetrics, mistakesIn, mixturesIn } from "./metric-names.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const rules = (
  parse(readFileSync("deploy/prometheus/rules.yaml", "utf8")) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(readFileSync("deploy/grafana/tenure.json", "utf8")) as {
  panels: { title: string; type: string; datasource?: { uid: string }; targets?: { expr: string }[] }[];
  templating: { list: { name: string; type: string; definition?: string }[] };
};
const known = knownMetrics(readFileSync("docs/reference/metrics.md", "utf8"));

async function shown(): Promise<string> {
  await using elector = createElector({ scope: "s", backend: testBackend() });
  return (await createMetrics(() => sourceOf({})).scrape()).text + prometheusText([elector]);
}

describe("deploy/prometheus/rules.yaml", () => {
  it("asks only for what exists", async () => {
    const text = await shown();
    expect(known.size).toBeGreaterThan(50);
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.flatMap(({ alert, expr }) => mistakesIn(expr, known, text).map((why) => `${alert}: ${why}`))).toEqual(
      [],
    );
  });

  it("mixes no two clusters: what is put together or compared is of one job", () => {
    expect(rules.flatMap(({ alert, expr }) => mixturesIn(expr).map((what) => `${alert}: ${what}`))).toEqual([]);
  });

  it("has the specification's four, with its severities", () => {
    const severity = Object.fromEntries(rules.map(({ alert, labels }) => [alert, labels["severity"]]));
    expect(severity).toMatchObject({
      TenureElectionsFail: "warning",
      TenureSplitBrain: "critical",
      TenureNoLeader: "critical",
      TenureFailoversFrequent: "warning",
    });
    expect(new Set(Object.values(severity))).toEqual(new Set(["critical", "warning"]));
    expect(Object.keys(severity), "an alert is there twice").toHaveLength(rules.length);
  });

  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    "%s says what to do, and its runbook says so too",
    (alert, { annotations }) => {
      const { summary, description, runbook_url: runbook = "" } = annotations;
      expect(summary?.length).toBeGreaterThan(15);
      expect(description).toMatch(/^[A-Z].{20,}\.$/);
      expect(runbook).toMatch(/^docs\/runbooks\/[a-z-]+\.md$/);
      expect(existsSync(runbook), runbook).toBe(true);
      expect(readFileSync(runbook, "utf8"), `${runbook} does not name ${alert}`).toContain(`\`${alert}\``);
    },
  );

  it("has a unit test for each alert, and no page names an alert that is not there", () => {
    const tested = parse(readFileSync("deploy/prometheus/rules.test.yaml", "utf8")) as { tests: { name: string }[] };
    const names = rules.map(({ alert }) => alert);
    expect(tested.tests.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    const pages = readdirSync("docs/runbooks").map((name) => `docs/runbooks/${name}`);
    for (const page of [...pages, "docs/reference/metrics.md", "docs/deploy.md"]) {
      const named = readFileSync(page, "utf8").match(/`Tenure[A-Z]\w+`/g) ?? [];
      expect(names, page).toEqual(expect.arrayContaining(named.map((name) => name.slice(1, -1))));
    }
  });
});

describe("deploy/grafana/tenure.json", () => {
  it("asks only for what exists, of a data source that its reader chooses", async () => {
    const text = await shown();
    const panels = dashboard.panels.filter(({ type }) => type !== "row");
    expect(panels.length).toBeGreaterThan(15);
    for (const { title, datasource, targets = [] } of panels) {
      expect(datasource?.uid, title).toBe("${datasource}");
      expect(targets.length, title).toBeGreaterThan(0);
      expect(
        targets.flatMap(({ expr }) => mistakesIn(expr, known, text)),
        title,
      ).toEqual([]);
    }
    expect(dashboard.templating.list).toMatchObject([{ name: "datasource", type: "datasource" }, { name: "job" }]);
    expect(mistakesIn(dashboard.templating.list[1]?.definition ?? "", known, text)).toEqual([]);
  });
});

describe("the check itself", () => {
  it.each([
    ["sum(tenure_rolle)", "there is no metric tenure_rolle"],
    ["tenure_fsync_ms > 1", "tenure_fsync_ms is a histogram"],
    ["rate(tenure_syncs_total_bucket[5m])", "tenure_syncs_total_bucket is a counter"],
    ['tenure_role{rank="LEADER"}', "tenure_role has no label rank"],
    ['tenure_role{role="BOSS"}', 'tenure_role is never shown with role="BOSS"'],
    ["sum by (node) (tenure_role)", "nothing has a label node"],
    ["vector(1)", "it asks for no metric"],
  ])("%s: %s", async (expression, why) => {
    expect(mistakesIn(expression, known, await shown()).join()).toContain(why);
  });

  it.each([
    ["sum by (scope) (tenure_is_leader) == 0", ["by (scope)"]],
    ["max(tenure_current_term)", ["max("]],
    ["absent(tenure_current_term)", ["absent("]],
    ["up and on (instance) tenure_current_term", ["on (instance)"]],
    ["min_over_time(tenure_disk_free_bytes[5m]) < 1 and sum by (job, scope) (tenure_is_leader) == 0", []],
  ])("%s mixes clusters by %j", (expression, mixtures) => {
    expect(mixturesIn(expression)).toEqual(mixtures);
  });
});
