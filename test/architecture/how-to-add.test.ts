// "How to add" of ARCHITECTURE.md, done once: each is added to a copy of the sources, in the files that the page names and in no other,
// and then used. When a place moves, the edit finds no anchor and says so; when a step is added or left out, the lists differ.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTenureCluster, type TenureCluster, VIEWER_KEY } from "../servers/index.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { paths, section } from "./page.ts";

const START_MS_MAX = 150_000;

interface Edit {
  /** Below src/. */
  readonly file: string;
  /** What is there, or null for a new file. */
  readonly anchor: string | null;
  readonly text: string;
}

const ROUTE: readonly Edit[] = [
  {
    file: "contract/routes.ts",
    anchor: "export const ROUTES = {\n",
    text: `  toy: { ...READ, path: "/v1/toy", summary: "A toy.", role: "viewer", query: noQuery, kind: "read", answer: answers.LivezAnswer, errors: [] },\n`,
  },
  {
    file: "api/handlers/cluster.ts",
    anchor: "  const { cluster } = service;\n  return {\n",
    text: `    toy: () => ({ body: { status: "ok" } }),\n`,
  },
];

const COMMAND: readonly Edit[] = [
  {
    file: "cli/toy/help.ts",
    anchor: null,
    text: `import { describe } from "../kit/description.ts";\nexport const TOY = describe("toy", "plays", "tenure toy: plays.\\n\\n  --loud   so that all hear it\\n");\n`,
  },
  {
    file: "cli/toy/command.ts",
    anchor: null,
    text: `import { kindsOf } from "../kit/description.ts";
import { parseFlags } from "../kit/flags.ts";
import { TOY } from "./help.ts";
export async function toy(args: readonly string[]): Promise<number> {
  const { values } = parseFlags(args, kindsOf(TOY));
  process.stdout.write(values.help !== undefined ? TOY.help : values.loud === undefined ? "plays\\n" : "PLAYS\\n");
  return 0;
}
`,
  },
  {
    file: "cli/main.ts",
    anchor: "  ...LIBRARY_COMMANDS,\n",
    text: `  toy: async () => (await import("./toy/command.ts")).toy,\n`,
  },
  {
    file: "cli/completion/table.ts",
    anchor: "export const COMMANDS: readonly Description[] = [\n",
    text: "  TOY,\n",
  },
  {
    file: "cli/completion/table.ts",
    anchor: `import { RUN } from "../run/help.ts";\n`,
    text: `import { TOY } from "../toy/help.ts";\n`,
  },
];

const EVENT: readonly Edit[] = [
  { file: "core/events/names.ts", anchor: "export const EVENT_TYPES = [\n", text: `  "queue:played",\n` },
  {
    file: "core/jobs/events.ts",
    anchor: "export type { EventDraft, EventPayload };\n",
    text: "export interface Played {\n  readonly times: number;\n}\n",
  },
  { file: "core/jobs/state/evolve.ts", anchor: "  payloadOf,\n", text: "  type Played,\n" },
  {
    file: "core/jobs/state/evolve.ts",
    anchor: "  switch (eventType) {\n",
    text: `    case "queue:played":\n      if (payloadOf<Played>(event).times > 0) state.paused.set(event.entityId, { queue: event.entityId });\n      return true;\n`,
  },
];

/** Seals, proposes and applies one event of the new type, as a leader does. */
const PLAY = `
import { SiteJournal } from "./src/controller/journal/site-journal.ts";
import { systemDigest } from "./src/drivers/system/digest.ts";
const journal = new SiteJournal(systemDigest);
const draft = { id: "e1", eventType: "queue:played", entityType: "queue", entityId: "q", payload: { times: 1 }, timestamp: 1790000000000 };
const { before, events } = journal.propose({ epoch: 1, author: "site" }, [draft]);
const [data] = journal.tailAfter(before.sequence, events);
journal.apply({ position: 1, epoch: 1, data });
console.log(journal.book.applied.queues().map(({ queue, paused }) => queue + " " + paused).join());
`;

let copy = "";
let cluster: TenureCluster | undefined;

beforeAll(async () => {
  copy = await temporaryDirectory("how-to", undefined);
  cpSync("src", join(copy, "src"), { recursive: true });
  for (const file of ["package.json", "node_modules"]) symlinkSync(resolve(file), join(copy, file));
  for (const edit of [...ROUTE, ...COMMAND, ...EVENT]) apply(edit);
  const main = join(copy, "src/cli/main.ts");
  cluster = await startTenureCluster({ nodes: 1, prepare: (node) => void (node.main = main) });
}, START_MS_MAX);
afterAll(async () => {
  await cluster?.end();
  await removeDirectory(copy);
});

function apply({ file, anchor, text }: Edit): void {
  const path = join(copy, "src", file);
  mkdirSync(dirname(path), { recursive: true });
  if (anchor === null) return writeFileSync(path, text);
  const [before, after, more] = readFileSync(path, "utf8").split(anchor);
  if (after === undefined || more !== undefined) throw new Error(`${file} has no place for this any more: ${anchor}`);
  writeFileSync(path, `${before}${anchor}${text}${after}`);
}

function node(...args: string[]): string {
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: copy, encoding: "utf8" });
  return `${stdout}${stderr}`.trim();
}

const tenure = (...args: string[]): string => node(join(copy, "src/cli/main.ts"), ...args);

describe.each([
  ["### A route", ROUTE],
  ["### A command", COMMAND],
  ["### An event type", EVENT],
] as const)("%s", (heading, edits) => {
  it("is added in files that the steps name", () => {
    const named = paths(section(heading)).map((path) => path.replace("<name>", "toy"));
    expect(edits.map(({ file }) => file).filter((file) => !named.includes(file))).toEqual([]);
  });
});

it("a route that was added answers, to those who have its role, and is in the API's description", async () => {
  const server = cluster!.node("n1");
  expect(await server.call("/v1/toy", { key: VIEWER_KEY })).toMatchObject({ status: 200, body: { status: "ok" } });
  expect((await server.call("/v1/toy", { key: null })).status).toBe(401);
  const contract = pathToFileURL(join(copy, "src/contract/index.ts")).href;
  const script = `import { openApi, ROUTES } from "${contract}"; console.log(Object.keys(openApi(ROUTES, "1").paths).includes("/v1/toy"));`;
  expect(node("--input-type=module", "--eval", script)).toBe("true");
});

it("a command that was added runs, and has its help, its flags and its completion", () => {
  expect(tenure("toy")).toBe("plays");
  expect(tenure("toy", "--loud")).toBe("PLAYS");
  expect(tenure("toy", "--lout")).toContain("--loud");
  expect(tenure("--help")).toMatch(/tenure toy +plays/);
  expect(tenure("completion", "bash")).toContain("toy");
});

it("an event of a type that was added is sealed, proposed and applied", () => {
  expect(node("--input-type=module", "--eval", PLAY)).toBe("q true");
});
