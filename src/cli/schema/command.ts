// `tenure schema print|apply|check`: the tables and functions in Postgres, for people whose application may not create
// them (`migrate: "check"`), and for those who want to read them first.

import { kindsOf, verbsOf } from "../kit/description.ts";
import { SCHEMA } from "./help.ts";
import { assertNever } from "../../core/kit/assert.ts";
import { type ErrorCode, ERRORS, TenureError } from "../../core/kit/errors.ts";
import { urlDriver } from "../../drivers/postgres/index.ts";
import { sqlstateOf } from "../../core/kit/sql-outcome.ts";
import { faultOf, textOf } from "../../postgres/faults.ts";
import {
  applySchema,
  checkSchema,
  DEFAULT_SCHEMA,
  SCHEMA_VERSION,
  schemaSql,
  type SchemaState,
} from "../../postgres/schema/schema.ts";
import type { SqlSession } from "../../ports/backends/sql.ts";
import { backendSource, backendUrl } from "../connection/backend.ts";
import { oneOf, parseFlags, UsageError } from "../kit/flags.ts";
import { printed } from "../kit/print.ts";
import { chosen, noName } from "../kit/words.ts";

const VERBS = verbsOf(SCHEMA);
const FLAGS = kindsOf(SCHEMA);

interface Target {
  readonly schema: string;
  readonly where: string;
}

export async function schema(args: readonly string[]): Promise<number> {
  const { values, words, rest } = parseFlags(args.map(long), FLAGS);
  if (values.help !== undefined || words[0] === "help") return printed(SCHEMA.help);
  const verb = chosen(words[0], VERBS);
  noName([...words, ...(rest ?? [])]);
  const json = oneOf("-o", values.output ?? "text", ["text", "json"]) === "json";
  if (verb === "print") {
    const name = values.schema ?? process.env["TENURE_PG_SCHEMA"] ?? DEFAULT_SCHEMA;
    const sql = schemaSql(name);
    return printed(json ? `${JSON.stringify({ schema: name, version: SCHEMA_VERSION, sql })}\n` : sql);
  }
  const source = backendSource(backendUrl(values.backend, process.env), process.env);
  if (source.kind !== "postgres") throw new UsageError("schema is for Postgres; the other backends need none");
  const driver = urlDriver(source.options.url, "tenure schema");
  const target = { schema: values.schema ?? source.options.schema ?? DEFAULT_SCHEMA, where: driver.where };
  const session = driver.open({});
  try {
    await session.ready;
    return report(target, await stateAfter(verb, session, target), json);
  } catch (error) {
    throw named(error, target);
  } finally {
    await session.end();
  }
}

async function stateAfter(verb: "apply" | "check", session: SqlSession, target: Target): Promise<SchemaState> {
  if (verb === "apply") await applySchema(session, target.schema);
  return checkSchema(session, target.schema);
}

function report(target: Target, state: SchemaState, json: boolean): number {
  const { code, text } = verdictOf(state);
  const place = `schema ${target.schema} of ${target.where}`;
  if (json) {
    const { kind, ...rest } = state;
    const line = { ...target, state: kind, expected: SCHEMA_VERSION, ...rest, error: code, message: text };
    process.stdout.write(`${JSON.stringify(line)}\n`);
  } else if (code === null) process.stdout.write(`${place}: ${text}\n`);
  else process.stderr.write(`tenure schema: ${place}: ${text}\n`);
  return code === null ? 0 : ERRORS[code].exit;
}

function verdictOf(state: SchemaState): { code: ErrorCode | null; text: string } {
  switch (state.kind) {
    case "current":
    case "newer": {
      if (state.foreign.length > 0) {
        return {
          code: "PERMISSION_DENIED",
          text: `${state.foreign.join(", ")} belong to another role than the tables, and could be called in place of Tenure's own. Find out who created them, and drop them.`,
        };
      }
      if (state.denied.length > 0) {
        const denied = state.denied.join(", ");
        return {
          code: "PERMISSION_DENIED",
          text: `an elector with this role may not use ${denied}. docs/reference/permissions.md has the grants.`,
        };
      }
      const newer = state.kind === "newer" ? `, newer than this command's ${SCHEMA_VERSION}, and works with it` : "";
      return { code: null, text: `version ${state.version}${newer}, all is there.` };
    }
    case "missing":
      return {
        code: "SCHEMA_MISSING",
        text: `missing: ${state.missing.join(", ")}. Run "tenure schema apply" as a role that may create them.`,
      };
    case "older":
      return {
        code: "SCHEMA_MISSING",
        text: `version ${state.version}, and this is ${SCHEMA_VERSION}. Run "tenure schema apply" as its owner.`,
      };
    case "unusable":
      return {
        code: "SCHEMA_MISSING",
        text: `version ${state.version} does not work with this one (${SCHEMA_VERSION}) any more. Upgrade Tenure here.`,
      };
    default:
      return assertNever(state, "schema state");
  }
}

function named(error: unknown, { schema: name, where }: Target): unknown {
  if (TenureError.is(error)) return error;
  const sqlstate = sqlstateOf(error);
  const [code, advice] = adviceOf(error, sqlstate, name, where);
  const said = sqlstate === undefined ? textOf(error) : `${textOf(error)} (SQLSTATE ${sqlstate})`;
  return new TenureError(code, `Postgres at ${where}: ${said}. ${advice}`, { cause: error });
}

function adviceOf(error: unknown, sqlstate: string | undefined, name: string, where: string): [ErrorCode, string] {
  switch (sqlstate) {
    case "42501":
      return [
        "PERMISSION_DENIED",
        `Nothing was changed. Use the owner of Tenure's tables, or at first a role that may create them: grant create on schema ${name}.`,
      ];
    case "0A000":
      return ["BACKEND_UNSUPPORTED", "Nothing was changed. Upgrade the server, or use another."];
    case "TN008":
      return ["SCHEMA_MISSING", "Nothing was changed. Upgrade Tenure here."];
    case "25006":
      return ["BACKEND_READ_ONLY", "Point --backend at the primary."];
    case "55P03":
      return ["BACKEND_UNAVAILABLE", "Another session migrates it, or holds a lock on a table of Tenure's. Try again."];
    case undefined:
      return [faultOf(error, { where, scope: "" }).code, "Check the URL, and that the server runs."];
    default:
      return [faultOf(error, { where, scope: "" }).code, "Nothing was changed."];
  }
}

function long(arg: string): string {
  if (arg === "-h") return "--help";
  return arg === "-o" ? "--output" : arg;
}
