// Which metrics and labels a PromQL expression asks for, and which exist. Not a parser of PromQL: it knows the few forms that
// deploy/ uses, and a form that it does not know fails its test.

interface Asked {
  readonly metric: string;
  /** With `role="LEADER"`: role, and the value that is asked for; "" where any will do. */
  readonly labels: readonly (readonly [name: string, value: string])[];
}

/** Every selector of a metric, and every label that results are grouped or joined by (as a selector of the whole). */
function askedBy(expression: string): { readonly selectors: readonly Asked[]; readonly groups: string[] } {
  const selectors = [...expression.matchAll(/\b((?:tenure_|up\b)\w*)(?:\{([^}]*)\})?/g)].map(
    ([, metric = "", inside = ""]) => ({
      metric,
      labels: [...inside.matchAll(/(\w+)\s*=~?\s*"([^"]*)"/g)].map(
        ([, name = "", value = ""]) => [name, value] as const,
      ),
    }),
  );
  const groups = [...expression.matchAll(/\b(?:by|on|without|group_left|group_right)\s*\(([^)]*)\)/g)].flatMap(
    ([, names = ""]) => names.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()])),
  );
  return { selectors, groups };
}

export interface KnownMetric {
  readonly type: string;
  readonly labels: readonly string[];
}

/** The tables of docs/reference/metrics.md, which test/metrics-doc.test.ts compares with the code. */
export function knownMetrics(markdown: string): ReadonlyMap<string, KnownMetric> {
  const rows = markdown.matchAll(/^\| `(tenure_\w+)` \| (counter|gauge|histogram) \| (.*?) \|/gm);
  return new Map(
    [...rows].map(([, name = "", type = "", labels = ""]) => [
      name,
      { type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label) },
    ]),
  );
}

/** Prometheus gives these to whatever it scrapes. */
const OF_EVERY_TARGET = ["job", "instance"];

/** What is wrong with the expression, in words; `shown` is what a server and an elector print, where values are looked up. */
export function mistakesIn(expression: string, known: ReadonlyMap<string, KnownMetric>, shown: string): string[] {
  const { selectors, groups } = askedBy(expression);
  if (selectors.length === 0) return ["it asks for no metric"];
  const labelsOfAll = new Set(["le", ...OF_EVERY_TARGET]);
  const mistakes: string[] = [];
  for (const { metric, labels } of selectors) {
    const base = metric.replace(/_bucket$/, "");
    const found = metric === "up" ? { type: "gauge", labels: [] } : known.get(base);
    if (found === undefined) {
      mistakes.push(`there is no metric ${metric}`);
      continue;
    }
    if ((metric === base) === (found.type === "histogram")) mistakes.push(`${metric} is a ${found.type}`);
    for (const label of found.labels) labelsOfAll.add(label);
    for (const [name, value] of labels) {
      if (![...OF_EVERY_TARGET, ...found.labels].includes(name)) mistakes.push(`${metric} has no label ${name}`);
      else if (!value.startsWith("$") && !OF_EVERY_TARGET.includes(name) && !shown.includes(`${name}="${value}"`))
        mistakes.push(`${metric} is never shown with ${name}="${value}"`);
    }
  }
  return [...mistakes, ...groups.filter((name) => !labelsOfAll.has(name)).map((name) => `nothing has a label ${name}`)];
}

/** What puts together or compares metrics of several jobs, where one Prometheus has several clusters. */
export function mixturesIn(expression: string): string[] {
  const all = expression.matchAll(/\b(?:sum|min|max|avg|count|group|absent)\s*\(|\b(?:by|on)\s*\(([^)]*)\)/g);
  return [...all].flatMap(([what, labels = ""]) => (/\bjob\b/.test(labels) ? [] : [what]));
}
