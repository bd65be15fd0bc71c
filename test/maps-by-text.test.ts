// Maps by text where jobs pass: the engine's own intern each key that they are asked about, which made full collections of garbage long
// (decision 52). Those that are listed are by names of which there are few, and which stay; ids of jobs and leases and keys of requests are
// in a `TextMap` or in `Shards`.

import { expect, it } from "vitest";
import { readSources, type SourceFile } from "../scripts/source.ts";

const ROOMS = ["src/core/jobs/", "src/controller/jobs/", "src/controller/journal/", "src/controller/leases.ts"];
/** Also one whose type is said on the left, or follows from the ids that it is made of. */
const BY_TEXT =
  /(#?\w+)(?:: [^=:\n]+)? = new (?:(?:Map|Set)<string\b|Set\([^\n]*\(\{ \w*[iI]d \}\))|(#?\w+): (?:Readonly)?(?:Map|Set)<string\b[^=:\n]*> = new (?:Map|Set)\(/g;

const BY_NAME = new Set([
  // Of kinds, queues, agents, schedules and callers; of policies and classes; of tenants.
  "src/core/jobs/decide/jobs.ts fresh",
  "src/core/jobs/snapshot/encode.ts #callers",
  "src/core/jobs/snapshot/encode.ts #classes",
  "src/core/jobs/snapshot/encode.ts #policies",
  "src/core/jobs/state/job-class.ts #classes",
  "src/core/jobs/state/key-shares.ts #byCaller",
  "src/core/jobs/state/name-shares.ts #byOwner",
  "src/core/jobs/state/ready.ts #byKind",
  "src/core/jobs/state/state.ts #ofAgent",
  "src/core/jobs/state/state.ts #ofSchedule",
  "src/core/jobs/state/state.ts #policies",
  "src/core/jobs/state/state.ts byQueue",
  "src/core/jobs/state/table.ts records",
  "src/core/jobs/state/views.ts counts",
  "src/controller/jobs/polls.ts #byAgent",
  "src/controller/jobs/polls.ts #byKind",
  "src/controller/jobs/polls.ts #byLabel",
  "src/controller/jobs/polls.ts #groups",
  "src/controller/jobs/schedules.ts #fired",
  "src/controller/jobs/timers.ts #sessions",
  "src/controller/journal/journal.ts states",
]);

function mapsByText(sources: readonly SourceFile[]): string[] {
  const isOfJobs = ({ path }: SourceFile): boolean =>
    ROOMS.some((room) => path.startsWith(room)) && !/\.test\.ts$|\/test-[^/]+$/.test(path);
  return sources
    .filter(isOfJobs)
    .flatMap(({ path, text }) => Array.from(text.matchAll(BY_TEXT), ([, name, typed]) => `${path} ${name ?? typed}`));
}

it("maps by text in the rooms of jobs are by names, of which there are few", () => {
  expect(mapsByText(readSources(process.cwd(), ["src"])).sort()).toEqual([...BY_NAME].sort());
});

it("a set of job ids is seen", () => {
  const text = [
    "readonly #gone = new Set<string>();",
    "#b: Map<string, X> = new Map<string, X>();",
    "let taken: ReadonlySet<string> = new Set();",
    "const ids = new Set(found.map(({ id }) => id));",
  ].join("\n");
  expect(mapsByText([{ path: "src/controller/jobs/x.ts", text }])).toEqual(
    ["#gone", "#b", "taken", "ids"].map((name) => `src/controller/jobs/x.ts ${name}`),
  );
});
