// docs/reference/cli.md against the commands themselves: the fields of each `-o json`, the flags, the doctor's rows.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { withFlags } from "../../scripts/cli-reference.ts";
import { etcdPath, type PostgresServer, startEtcd, startPostgres, waitFor } from "../servers/index.ts";
import { atTheEnd, connect, installed, run, silentLeader, start, tenure } from "./test-tenure.ts";

const DOCUMENT = readFileSync("docs/reference/cli.md", "utf8");

let server: PostgresServer;
let url: string;
beforeAll(async () => {
  server = await startPostgres({ settings: { max_prepared_transactions: "5" } });
  atTheEnd(() => server.end());
  url = await installed(server);
});

/** The text from a heading to the next one of its level or above. */
function section(heading: string): string {
  const start = DOCUMENT.indexOf(`\n${heading}\n`);
  if (start < 0) throw new Error(`docs/reference/cli.md has no ${heading}`);
  const level = /^#+/.exec(heading)![0].length;
  const rest = DOCUMENT.slice(start + heading.length + 1);
  const end = rest.search(new RegExp(`\n#{1,${level}} `));
  return end < 0 ? rest : rest.slice(0, end);
}

/** The first cells of the table with this head. */
function firstCells(text: string, head: string): string[] {
  const table = text.slice(text.indexOf(`| ${head} |`)).split("\n\n")[0] ?? "";
  const rows = table.trimEnd().split("\n").slice(2);
  return rows.map((row) => /^\| `([^`]+)`/.exec(row)?.[1] ?? row);
}

/** `a.b`, `list[].c`, `list[]`; what is in `free` is a map whose names are the user's. */
function pathsOf(value: unknown, free: readonly string[], prefix = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => pathsOf(one, free, `${prefix}[]`));
  if (typeof value !== "object" || value === null || free.includes(prefix)) return [prefix];
  return Object.entries(value).flatMap(([name, inner]) =>
    pathsOf(inner, free, prefix === "" ? name : `${prefix}.${name}`),
  );
}

function documented(heading: string): string[] {
  return firstCells(section(heading), "Field").toSorted();
}

async function printed(...args: readonly string[]): Promise<string[]> {
  const { stdout, stderr } = await tenure(...args, "-o", "json");
  expect(stderr).toBe("");
  return fieldsOf(JSON.parse(stdout));
}

function fieldsOf(value: unknown): string[] {
  return [...new Set(pathsOf(value, ["metadata"]))].toSorted();
}

describe("the fields of -o json", () => {
  it("of scope list, show, history and watch are those of the document", async () => {
    await silentLeader(url, "jobs", "11");
    const waiter = await connect(url, "tenure jobs");
    const waiting = waiter.query("select pg_advisory_lock(11)").catch(() => undefined);
    const fenced = await connect(url, "a writer");
    await fenced.query("begin");
    await fenced.query("select tenure_require_epoch('jobs', 1)");
    await waitFor("the waiter to wait", async () => {
      return (await server.query("select from pg_locks where locktype = 'advisory' and not granted")).length === 1;
    });
    expect(await printed("scope", "list", "--backend", url)).toEqual(documented("### `tenure scope list -o json`"));
    expect(await printed("scope", "show", "jobs", "--backend", url)).toEqual(
      documented("### `tenure scope show SCOPE -o json`"),
    );
    expect(await printed("scope", "history", "jobs", "--backend", url)).toEqual(
      documented("### `tenure scope history SCOPE -o json`"),
    );
    const watch = start(["scope", "watch", "jobs", "--backend", url, "-o", "json"]);
    await waitFor("a line", () => watch.said.stdout.includes("\n"));
    watch.child.kill("SIGINT");
    expect((await watch.ended).code).toBe(130);
    const line: unknown = JSON.parse(watch.said.stdout.split("\n")[0]!);
    expect(fieldsOf(line)).toEqual(documented("### `tenure scope watch SCOPE -o json`"));
    await fenced.query("rollback");
    await waiter.end();
    await waiting;
  });

  it("of scope resign are those of the document", async () => {
    await silentLeader(url, "mail", "12");
    const { stdout, code } = await tenure("scope", "resign", "mail", "--wait", "1ms", "--backend", url, "-o", "json");
    expect(code).toBe(75);
    expect(fieldsOf(JSON.parse(stdout))).toEqual(documented("### `tenure scope resign SCOPE -o json`"));
  });

  it("of doctor are those of the document, and so are its rows", async () => {
    const empty = await tenure("doctor", "--backend", await installed(server), "-o", "json");
    await run(url, "alter table tenure_leader_state disable trigger tenure_notify", "select tenure_site('jobs')");
    const full = await tenure("doctor", "--backend", url, "-o", "json");
    await run(url, "alter table tenure_leader_state enable trigger tenure_notify");
    expect(fieldsOf(JSON.parse(full.stdout))).toEqual(firstCells(section("## `tenure doctor`"), "Field").toSorted());
    const rows = [empty, full].flatMap(({ stdout }) =>
      (JSON.parse(stdout) as { checks: { name: string }[] }).checks.map((check) => check.name),
    );
    expect([...new Set(rows)].toSorted()).toEqual(firstCells(section("## `tenure doctor`"), "Row").toSorted());
  });

  it.skipIf(etcdPath() === undefined)("of doctor on etcd are the same, with the rows of the document", async () => {
    const node = await startEtcd();
    atTheEnd(() => node.end());
    const { stdout } = await tenure("doctor", "--backend", node.endpoint.replace("http", "etcd"), "-o", "json");
    const names = (JSON.parse(stdout) as { checks: { name: string }[] }).checks.map((check) => check.name);
    const [, text = ""] = section("## `tenure doctor`").split("The rows for etcd:");
    expect(names).toEqual(firstCells(text, "Row"));
  });

  it("of schema print, check and apply are those of the document", async () => {
    expect(await printed("schema", "print")).toEqual(documented("### `tenure schema print -o json`"));
    const bare = await server.createDatabase("bare");
    await run(bare, "create role bare login password 'pw'");
    const missing = await tenure("schema", "check", "--backend", bare, "-o", "json");
    await printed("schema", "apply", "--backend", bare);
    const denied = await tenure("schema", "check", "--backend", server.url("bare", "bare", "pw"), "-o", "json");
    await run(
      bare,
      "create role stranger",
      "grant create on schema public to stranger",
      "set role stranger; create function public.tenure_beat(text) returns void language sql as 'select 1'; reset role",
    );
    const foreign = await tenure("schema", "check", "--backend", bare, "-o", "json");
    const fields = [missing, denied, foreign].flatMap(({ stdout }) => fieldsOf(JSON.parse(stdout)));
    expect([...new Set(fields)].toSorted()).toEqual(documented("### `tenure schema check -o json`"));
  });
});

describe("the flags", () => {
  it("of every command are those of its description, in that order: node scripts/cli-reference.ts writes them", () => {
    expect(withFlags(DOCUMENT)).toBe(DOCUMENT);
  });

  it("of a section that lacks one, has one too many or a wrong value, are written", () => {
    const wrong = DOCUMENT.replace(/^\| `--watch`.*\n/m, "| `--gone` | – | no more |\n").replace(
      "`--to NODE`",
      "`--to PEER`",
    );
    const written = withFlags(wrong);
    expect(written).not.toContain("--gone");
    expect(written).toContain("| `--watch` | – | status: again every second, until SIGINT |\n| `--to NODE` | the best");
  });
});

describe("the runbooks", () => {
  const pages = readdirSync("docs/runbooks").map((name) => join("docs/runbooks", name));

  it("name rows of the doctor that exist", () => {
    const rows = firstCells(section("## `tenure doctor`"), "Row");
    const named = pages.flatMap((page) =>
      [...readFileSync(page, "utf8").matchAll(/\brows? `([a-z ]+)`/gi)].map(([, name = ""]) => name),
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !rows.includes(name))).toEqual([]);
  });
});
