// docs/reference/configuration.md lists every option of postgres() and every field of a server's file with its default, and
// every variable that is read.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readSources } from "../scripts/source.ts";
import { parseConfigText } from "../src/cli/files/text.ts";
import {
  ClientConfigFile,
  parseClientConfig,
  parseServerConfig,
  SERVER_DEFAULTS,
  SERVER_ENVIRONMENT,
  ServerConfigFile,
  snakeKey,
} from "../src/contract/index.ts";
import { SNAPSHOT_AFTER_BYTES, SNAPSHOT_AFTER_ENTRIES, SNAPSHOT_KEEP_ENTRIES } from "../src/core/kit/limits.ts";
import { ELECTION_DEFAULTS, electionConfig } from "../src/core/raft/config.ts";
import { ENVIRONMENT } from "../src/electors/postgres/environment.ts";
import { OPTION_NAMES, type PostgresSettings, settingsOf } from "../src/electors/postgres/options.ts";

const OPTION_ROW = /^\| `([\w.[\]]+)` \| (?:`(TENURE_\w+)`|–) \| (?:`([^`]+)`|–) \| (.{20,}) \|$/;
const VARIABLE = /\bTENURE_[A-Z]+(?:_[A-Z]+)*\b/g;

interface Row {
  readonly variable: string | undefined;
  readonly default: string | undefined;
}

const markdown = readFileSync("docs/reference/configuration.md", "utf8");
const library = section(markdown, "## `postgres({ … })`");
const server = section(markdown, "## `tenure server`");

function section(text: string, title: string): string {
  const [, rest = ""] = text.split(`${title}\n`);
  expect(rest, `there is no ${title}`).not.toBe("");
  return rest.split("\n## ", 1)[0] ?? "";
}

function options(text: string): Record<string, Row> {
  const rows: Record<string, Row> = {};
  for (const line of text.split("\n").filter((one) => /^\| `[a-z]/.test(one))) {
    const match = OPTION_ROW.exec(line);
    expect(match, `a row is not in the table's form: ${line}`).not.toBeNull();
    rows[match?.[1] ?? ""] = { variable: match?.[2], default: match?.[3] };
  }
  return rows;
}

/** What `settingsOf` makes of nothing, by the option's name. */
function defaults({ timing, ...settings }: PostgresSettings): Record<string, unknown> {
  return { ...settings, ...timing };
}

function variables(text: string): string[] {
  return [...new Set(text.match(VARIABLE))].sort();
}

const client = section(markdown, "## Your own file");

it("lists the fields of the client's file with their variables, and no other", () => {
  const rows = [...client.matchAll(/^\| `([a-z_]+)` \| (?:`(TENURE_\w+)`|–) \| (?:`(-[-a-z]+)`|–) \| .{15,} \|$/gm)];
  expect(rows.map(([, field]) => field)).toEqual(Object.keys(ClientConfigFile.properties));
  expect(rows.map(([, , variable]) => variable)).toEqual([
    "TENURE_URL",
    "TENURE_API_KEY",
    "TENURE_API_KEY_FILE",
    "TENURE_SERVERS_CA_FILE",
    "TENURE_SERVERS_CERT_FILE",
    "TENURE_SERVERS_KEY_FILE",
    undefined,
  ]);
});

it("shows TOML that is valid", () => {
  const example = (text: string): string => /```toml\n(.*?)```/s.exec(text)?.[1] ?? "there is none";
  const surroundings = { environment: {}, configDir: "/etc/tenure", checkElection: electionConfig };
  const config = parseServerConfig(parseConfigText("a.toml", example(server)), surroundings);
  expect([config.nodeId, config.keys.length, Object.keys(config.peers)]).toEqual(["n1", 1, ["n2", "n3"]]);
  expect(parseClientConfig(parseConfigText("a.toml", example(client)), "a.toml")).toMatchObject({ key_file: "key" });
});

it("lists the options of postgres(), and no other", () => {
  expect(Object.keys(options(library)).sort()).toEqual([...OPTION_NAMES].sort());
});

it("gives each option's default as it is", () => {
  const actual = defaults(settingsOf({ url: "postgres://h/d" }));
  for (const [name, row] of Object.entries(options(library))) {
    const value = actual[name];
    expect(row.default, name).toBe(value === undefined ? undefined : `${value as string | number}`);
  }
});

it("names the variable of each option that the specification has one for", () => {
  const rows = options(library);
  for (const [variable, { option }] of Object.entries(ENVIRONMENT)) {
    if (option !== "enabled") expect(rows[option]?.variable, option).toBe(variable);
  }
});

it("lists every variable that the sources name, and no other", () => {
  const sources = readSources(".", ["src"]).filter(({ path }) => !path.endsWith(".test.ts"));
  expect(sources.length).toBeGreaterThan(50);
  expect(variables(markdown)).toEqual(variables(sources.map(({ text }) => text).join("\n")));
});

it("sees a missing and an invented option, and a changed default", () => {
  const row = "| `retryMinMs` | `TENURE_ACQUIRE_BACKOFF_MS_MIN` | `200` |";
  expect(library).toContain(row);
  expect(Object.keys(options(library.replace(row, "| was here |")))).not.toContain("retryMinMs");
  expect(options(library.replace(row, row.replace("retryMinMs", "invented")))).toHaveProperty("invented");
  expect(options(library.replace(row, row.replace("200", "201")))["retryMinMs"]?.default).toBe("201");
});

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** `peer.tls.ca_file`, `keys[].name`; a map of one's own names is one field. */
function fieldsOf(schema: Schema, path = ""): string[] {
  if (schema.items?.properties !== undefined) return fieldsOf(schema.items, `${path}[]`);
  if (schema.properties === undefined) return [path];
  return Object.entries(schema.properties).flatMap(([name, one]) =>
    fieldsOf(one, path === "" ? name : `${path}.${name}`),
  );
}

function serverDefaults(): Record<string, string> {
  const all = {
    ...SERVER_DEFAULTS,
    ...Object.fromEntries(
      Object.entries(ELECTION_DEFAULTS).map(([name, value]) => [`election.${snakeKey(name)}`, value]),
    ),
    "snapshots.after_entries": SNAPSHOT_AFTER_ENTRIES,
    "snapshots.after_bytes": SNAPSHOT_AFTER_BYTES,
    "snapshots.keep_entries": SNAPSHOT_KEEP_ENTRIES,
  };
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, String(value)]));
}

it("lists the fields of a server's configuration, and no other", () => {
  const fields = fieldsOf(ServerConfigFile as Schema);
  expect(fields.length).toBeGreaterThan(30);
  expect(Object.keys(options(server)).sort()).toEqual(fields.sort());
});

it("gives each field's default and variable as they are", () => {
  const variables = new Map(Object.entries(SERVER_ENVIRONMENT).map(([variable, path]) => [path.join("."), variable]));
  const defaultOf = serverDefaults();
  for (const [name, row] of Object.entries(options(server))) {
    expect(row, name).toEqual({ variable: variables.get(name), default: defaultOf[name] });
  }
});

it("sees a missing and an invented field, and a changed default", () => {
  const row = "| `log.level` | `TENURE_LOG_LEVEL` | `info` |";
  expect(server).toContain(row);
  expect(Object.keys(options(server.replace(row, "| was here |")))).not.toContain("log.level");
  expect(options(server.replace(row, row.replace("log.level", "log.loud")))).toHaveProperty(["log.loud"]);
  expect(options(server.replace(row, row.replace("info", "warn")))["log.level"]?.default).toBe("warn");
});
