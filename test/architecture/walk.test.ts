// The walks of ARCHITECTURE.md, compared with the code. POST /v1/jobs is measured: a real server answers real requests, and a probe in
// its process (walk-probe.ts) says which functions ran on the way to Raft's log.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPERATOR_KEY, startTenureCluster, type TenureCluster } from "../servers/index.ts";
import { exists, PAGE, paths, section, type Stop, stops } from "./page.ts";

/** What runs by chance next to one request does not run next to each of them. */
const REQUESTS = 6;
const START_MS_MAX = 150_000;

interface Walked {
  readonly ran: Readonly<Record<string, readonly string[]>>;
  readonly stack: readonly string[];
}

const POST = section("### POST /v1/jobs, from the socket to Raft's log");
const LISTED = stops(POST);

describe("the walk of POST /v1/jobs", () => {
  let cluster: TenureCluster;
  let walks: readonly Walked[] = [];

  beforeAll(async () => {
    let out = "";
    const probe = pathToFileURL(join(import.meta.dirname, "walk-probe.ts"));
    cluster = await startTenureCluster({
      nodes: 1,
      prepare: (node) => {
        out = join(node.home, "walks");
        probe.searchParams.set("out", out);
        node.nodeFlags = ["--import", probe.href];
      },
    });
    for (let at = 0; at < REQUESTS; at++) {
      const answer = await cluster
        .node("n1")
        .call("/v1/jobs", { method: "POST", key: OPERATOR_KEY, body: { kind: "x" } });
      expect(answer.status).toBe(200);
    }
    walks = readFileSync(out, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Walked);
  }, START_MS_MAX);
  afterAll(() => cluster?.end());

  it("was measured for each request", () => {
    expect(walks.length).toBe(REQUESTS);
  });

  it("lists functions that ran, each in its file", () => {
    for (const { ran } of walks) {
      const missing = LISTED.flatMap(({ file, functions }) =>
        functions.filter((name) => !(ran[file] ?? []).includes(name)).map((name) => `${file} ${name}`),
      );
      expect(missing).toEqual([]);
    }
  });

  it("lists every file that was on the stack of the append, or on a stack that led to it", () => {
    const listed = LISTED.map(({ file }) => file);
    for (const { stack } of walks) expect(stack.filter((file) => !listed.includes(file))).toEqual([]);
    const bold = [...POST.matchAll(/^\| \d+ \| `([\w./-]+)` [^|]*\| \*\*/gm)].map(([, file]) => file!);
    expect([...walks[0]!.stack].toSorted()).toEqual(bold.toSorted());
  });

  it("names every other file that ran, or the folder that it is in", () => {
    const [asked = ""] = POST.split("Asked on the way").slice(1);
    const known = [...LISTED.map(({ file }) => file), ...paths(asked)];
    const always = Object.keys(walks[0]!.ran).filter((file) => walks.every(({ ran }) => file in ran));
    expect(
      always.filter((file) => !known.some((one) => file === one || (one.endsWith("/") && file.startsWith(one)))),
    ).toEqual([]);
  });

  it("says how many files it has", () => {
    const on = new Set(walks[0]!.stack).size;
    expect(POST).toContain(`${LISTED.length} files`);
    expect(POST).toContain(`${on} of them`);
    expect(new Set(LISTED.map(({ file }) => file)).size).toBe(LISTED.length);
  });
});

describe("the other walks", () => {
  it.each(["### `lead`, to a committed `term.tx`", "### A vote"])(
    "%s: each file has the functions that are named",
    (heading) => {
      const listed = stops(section(heading));
      expect(listed.length).toBeGreaterThan(5);
      expect(listed.flatMap(missingIn)).toEqual([]);
    },
  );
});

it("every path of ARCHITECTURE.md exists", () => {
  expect(paths(PAGE).filter((path) => !path.includes("<") && !exists(path))).toEqual([]);
});

function missingIn({ file, functions }: Stop): string[] {
  const text = readFileSync(`src/${file}`, "utf8");
  return functions
    .filter(
      (name) =>
        !new RegExp(`^ *(?:(?:export|async|static|readonly|get|function|const) )*\\*?${name}(?: =|[(<:?])`, "m").test(
          text,
        ),
    )
    .map((name) => `${file} ${name}`);
}
