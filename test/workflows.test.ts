// .github/workflows as GitHub reads them, by GitHub's own parser, and what that parser does not check: that the scripts exist, that nobody has
// more rights than the work needs, and that no text of others becomes part of a command. Nothing is run on GitHub here.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const FOLDER = ".github/workflows";
const FILES = readdirSync(FOLDER);

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly "timeout-minutes"?: number;
  readonly container?: { readonly image: string };
  readonly steps: readonly Step[];
}
interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

/** What jobs may do beyond reading the repository. */
const RIGHTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "release.yml publish": { contents: "read", "id-token": "write" },
  "release.yml image": { contents: "read", packages: "write", "id-token": "write" },
};

// The parser imports a JSON file as bundlers do; Node needs an attribute for that.
registerHooks({
  load: (url, context, next) =>
    next(url, url.endsWith(".json") ? { ...context, importAttributes: { type: "json" } } : context),
});
const { parseWorkflow, convertWorkflowTemplate, NoOperationTraceWriter } = await import("@actions/workflow-parser");

const source = (name: string): string => readFileSync(join(FOLDER, name), "utf8");

async function problemsOf(name: string, content: string): Promise<string[]> {
  const { context, value } = parseWorkflow({ name, content }, new NoOperationTraceWriter());
  if (value !== undefined) await convertWorkflowTemplate(context, value);
  return context.errors.getErrors().map(({ message }) => message);
}

/** Commands that name what is not there, or take in a text that somebody else has written. */
function wrongIn(run: string, scripts: Readonly<Record<string, string>>): string[] {
  const called = [...run.matchAll(/\bnpm (?:run (?:--?\S+ )*)([\w:-]+)/g)].map(([, name = ""]) => name);
  const files = [...run.matchAll(/\b(?:node|bash) ([\w./-]+)/g)].map(([, file = ""]) => file);
  const inserted = [...run.matchAll(/\$\{\{\s*([^}]*?)\s*\}\}/g)].map(([, text = ""]) => text);
  const shell = spawnSync("bash", ["-n"], { input: run.replaceAll(/\$\{\{[^}]*\}\}/g, "1"), encoding: "utf8" });
  return [
    ...called.filter((name) => !Object.hasOwn(scripts, name)).map((name) => `there is no script ${name}`),
    ...files.filter((file) => !existsSync(file)).map((file) => `there is no file ${file}`),
    ...inserted.filter((text) => !/^matrix\.\w+$/.test(text)).map((text) => `${text} becomes part of a command`),
    ...(shell.status === 0 ? [] : [shell.stderr]),
  ];
}

const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };

it("there are three", () => expect(FILES.toSorted()).toEqual(["check.yml", "long.yml", "release.yml"]));

describe.each(FILES)("%s", (name) => {
  const { permissions, jobs } = parse(source(name)) as Workflow;
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  it("is accepted by GitHub's parser", async () => {
    expect(await problemsOf(name, source(name))).toEqual([]);
  });

  it("gives its jobs the right to read, and more only to those that need it", () => {
    expect(permissions).toEqual({ contents: "read" });
    for (const [id, job] of Object.entries(jobs)) expect(job.permissions, id).toEqual(RIGHTS[`${name} ${id}`]);
    expect(source(name)).not.toContain("secrets.");
    expect(source(name)).not.toContain("pull_request_target");
    for (const step of steps.filter(({ uses }) => uses?.startsWith("actions/checkout@")))
      expect(step.with).toMatchObject({ "persist-credentials": false });
  });

  it("uses actions of GitHub and Docker, each by its major version, and ends in time", () => {
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(/^(?:actions|docker)\/[\w-]+@v\d+$/);
    for (const [id, job] of Object.entries(jobs)) expect(job["timeout-minutes"], id).toBeLessThanOrEqual(60);
  });

  it("runs what exists", () => {
    const runs = steps.flatMap(({ run }) => run ?? []);
    expect(runs.length).toBeGreaterThan(0);
    expect(runs.flatMap((run) => wrongIn(run, scripts))).toEqual([]);
  });
});

it("long.yml runs each share of the long tests once", () => {
  const { jobs } = parse(source("long.yml")) as { jobs: { long: Job & { strategy: { matrix: { shard: number[] } } } } };
  const { shard } = jobs.long.strategy.matrix;
  expect(shard).toEqual(Array.from(shard, (_, at) => at + 1));
  expect(jobs.long.steps.at(-1)?.run).toBe(`npm run test:long -- --shard=\${{ matrix.shard }}/${shard.length}`);
});

describe("what these would refuse", () => {
  it.each([
    ["an unknown field", "timeout-minutes: 45", "timeout-minutez: 45", "timeout-minutez"],
    ["an unknown name in an expression", "github.ref", "gitub.ref", "gitub"],
    ["an unknown event", "pull_request:", "pull_requests:", "pull_requests"],
    ["no place to run", "runs-on: ubuntu-24.04", "name: none", "runs-on"],
  ])("%s", async (_what, find, replace, named) => {
    expect(source("check.yml")).toContain(find);
    expect((await problemsOf("x.yml", source("check.yml").replace(find, replace))).join()).toContain(named);
  });

  it.each([
    ["npm run test:longer", "there is no script test:longer"],
    ["bash .ci/runs", "there is no file .ci/runs"],
    ["echo ${{ github.head_ref }}", "github.head_ref becomes part of a command"],
    ["if true; then", "syntax error"],
  ])("%s", (run, why) => {
    expect(wrongIn(run, scripts).join()).toContain(why);
  });
});
