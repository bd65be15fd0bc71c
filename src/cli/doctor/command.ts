// `tenure doctor`: looks at a backend, and says what could go wrong and how to repair it. The composition root: looking
// (*-look.ts) and judging (postgres-judge.ts, etcd.ts, servers.ts) are apart, and the judgement is pure.

import { kindsOf } from "../kit/description.ts";
import { DOCTOR } from "./help.ts";
import { etcdSettings } from "../../electors/etcd/index.ts";
import { settingsOf } from "../../electors/postgres/index.ts";
import { serversSettings } from "../../electors/servers/index.ts";
import { backendSource, backendUrl } from "../connection/backend.ts";
import { judgeEtcd } from "./etcd.ts";
import { lookAtEtcd } from "./etcd-look.ts";
import { judgePostgres } from "./postgres-judge.ts";
import { lookAtPostgres } from "./postgres-look.ts";
import { judgeServers } from "./servers.ts";
import { lookAtServers } from "./servers-look.ts";
import { type Check, exitCode, reportObject, reportText } from "./report.ts";
import { oneOf, parseFlags, UsageError } from "../kit/flags.ts";
import { json, OUTPUTS, withLongOutput } from "../kit/output.ts";
import { printed, stdoutPaint } from "../kit/print.ts";

const KINDS = kindsOf(DOCTOR);

export async function doctor(args: readonly string[]): Promise<number> {
  const { values, words } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return printed(DOCTOR.help);
  if (words.length > 0)
    throw new UsageError(`${JSON.stringify(words[0])} belongs to no flag, and doctor takes flags alone`);
  if (values.scope === "") throw new UsageError("--scope must not be empty");
  const output = oneOf("-o", values.output ?? "table", OUTPUTS);
  const { kind, where, checks } = await examine(backendUrl(values.backend, process.env), values.scope);
  process.stdout.write(
    output === "json"
      ? json(reportObject(kind, where, checks))
      : reportText(`${kind} at ${where}`, checks, stdoutPaint()),
  );
  return exitCode(checks, values.strict !== undefined);
}

export interface Examination {
  readonly kind: string;
  readonly where: string;
  readonly checks: readonly Check[];
}

/** The whole examination, without the printing. */
export async function examine(url: string, scope: string | undefined): Promise<Examination> {
  const source = backendSource(url, process.env);
  if (source.kind === "etcd") {
    const facts = await lookAtEtcd(etcdSettings(source.options));
    return { kind: source.kind, where: facts.where, checks: judgeEtcd(facts) };
  }
  if (source.kind === "servers") {
    const facts = await lookAtServers(serversSettings(source.urls, source.options));
    return { kind: source.kind, where: facts.where, checks: judgeServers(facts) };
  }
  const { options } = source;
  const facts = await lookAtPostgres({ url: options.url, settings: settingsOf(options), scope });
  return { kind: source.kind, where: facts.where, checks: judgePostgres(facts) };
}
