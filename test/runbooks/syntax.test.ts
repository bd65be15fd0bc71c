// Every block of every runbook, and every `tenure …` in its text: shell by `bash -n`, calls of `tenure` by the command line's own
// table, SQL by a real Postgres with Tenure's schema, TOML as a server reads it. A block in another language fails here: nothing
// would check it. What can be run is run by run.test.ts.

import { spawnSync } from "node:child_process";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseConfigText } from "../../src/cli/files/text.ts";
import { parseServerConfig } from "../../src/contract/index.ts";
import { electionConfig } from "../../src/core/raft/config.ts";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import { type PostgresServer, startPostgres } from "../servers/index.ts";
import { type Block, blocksOf, commandsOf, mentionsOf, problemOf, runbooks, tenureCalls } from "./documents.ts";

const BOOKS = runbooks();
let server: PostgresServer;
let client: Client;

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
  client = new Client({ connectionString: server.url() });
  await client.connect();
  await client.query(schemaSql("public"));
  await client.query("create role app; create role tenure_owner");
});
afterAll(async () => {
  await client?.end();
  await server?.end();
});

async function problemsOf(text: string): Promise<string[]> {
  const problems: string[] = [];
  for (const block of blocksOf(text))
    for (const problem of await blockProblems(block)) problems.push(`line ${block.line}: ${problem}`);
  for (const mention of mentionsOf(text))
    for (const words of tenureCalls(mention)) {
      const problem = problemOf(words, true);
      if (problem !== undefined) problems.push(`\`${mention}\`: ${problem}`);
    }
  return problems;
}

async function blockProblems(block: Block): Promise<string[]> {
  switch (block.language) {
    case "sh":
      return shellProblems(block);
    case "sql":
      return await sqlProblems(block);
    case "toml":
      return tomlProblems(block);
    default:
      return [`nothing checks a block in ${JSON.stringify(block.language)}`];
  }
}

function shellProblems(block: Block): string[] {
  const commands = commandsOf(block);
  const { status, stderr } = spawnSync("bash", ["-n"], { input: block.lines.join("\n"), encoding: "utf8" });
  return [
    ...(status === 0 ? [] : [stderr]),
    ...commands.flatMap(tenureCalls).flatMap((words) => problemOf(words) ?? []),
    ...commands.filter((one) => /\bcurl\b|\bhttp:\/\//.test(one)).map((one) => `not by the CLI over TLS: ${one}`),
  ];
}

/** Nothing of it stays. What is to be filled in is a number that nobody has. */
async function sqlProblems({ lines }: Block): Promise<string[]> {
  await client.query("begin");
  try {
    await client.query(lines.join("\n").replaceAll(/\bPID\b/g, "0"));
    return [];
  } catch (error) {
    return [(error as Error).message];
  } finally {
    await client.query("rollback");
  }
}

/** As a part of a configuration that is whole. */
function tomlProblems({ lines }: Block): string[] {
  const surroundings = { environment: {}, configDir: "/etc/tenure", checkElection: electionConfig };
  try {
    const part = parseConfigText("a.toml", lines.join("\n")) as object;
    parseServerConfig({ node_id: "n1", data_dir: "d", ...part }, surroundings);
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

it.each(BOOKS)("$file has no command that would be refused", async ({ text }) => {
  expect(await problemsOf(text)).toEqual([]);
});

it("all of them are read: there are blocks of each language, and commands in the text", () => {
  const blocks = BOOKS.flatMap(({ text }) => blocksOf(text));
  expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(["sh", "sql", "toml"]));
  expect(blocks.length).toBeGreaterThan(30);
  expect(BOOKS.flatMap(({ text }) => mentionsOf(text)).length).toBeGreaterThan(40);
});

const book = BOOKS.find(({ file }) => file === "cluster-restore.md")!;

describe("a mistake in a copy is found", () => {
  it.each([
    ["a verb that does not exist", "sh", "tenure cluster snapshot check nightly.snap", "snapshot has no check"],
    ["a flag that does not exist", "sh", "tenure member add n2 --voters", "member has no flag --voters"],
    ["a flag without its value", "sh", "tenure cluster transfer --to", "--to needs a value"],
    ["a value that is none", "sh", "tenure job list --state waiting", "--state takes no waiting"],
    ["a missing target", "sh", "tenure member add --voter", "lacks what it is about"],
    ["a word too many", "sh", "tenure cluster status n1", "takes no n1"],
    ["in a pipe", "sh", "until tenure cluster state | jq .; do sleep 1; done", "cluster has no state"],
    ["a quote that is open", "sh", "tenure cluster status; echo '", "unexpected EOF"],
    ["a request without TLS", "sh", "curl http://n1.example.net:7401/v1/jobs", "not by the CLI over TLS"],
    ["a table that does not exist", "sql", "update tenure_leaders set epoch = 1;", "tenure_leaders"],
    ["a field that does not exist", "toml", "[peer]\ntrusted = []", "trusted"],
    ["a language that nothing checks", "promql", "up == 0", "nothing checks"],
  ])("%s", async (_what, language, line, says) => {
    const planted = `${book.text}\n\`\`\`${language}\n${line}\n\`\`\`\n`;
    expect(await problemsOf(planted)).toEqual([expect.stringContaining(says)]);
  });

  it("in the text", async () => {
    expect(await problemsOf(`${book.text}\nAsk \`tenure cluster statsu\`.\n`)).toEqual([
      expect.stringContaining("cluster has no statsu"),
    ]);
  });
});
