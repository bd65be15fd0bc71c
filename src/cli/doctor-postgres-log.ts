// What the doctor says of a log that servers keep in Postgres: rights, guards, whether its ends are there, what waits in the
// inbox, and which nodes are silent. Pure; doctor-postgres-log-look.ts gathers the facts.

import { quoteName, type LogFacts } from "./doctor-postgres.ts";
import { type Check, ok, problem, warning } from "./doctor-report.ts";

/** A leader takes submissions over in milliseconds. */
const INBOX_MS_MAX = 30_000;
/** A node is heard of once a second. */
const SILENT_MS_MAX = 10_000;

export function judgeLog(facts: LogFacts, schema: string, role: string): Check[] {
  const guards = judgeGuards(facts, schema);
  if (!facts.isReadable) return [ok("log", `role ${role} may not read it: no server runs with this role`), ...guards];
  if (facts.heads.length === 0) return [ok("log", "no server keeps its log here"), ...guards];
  const checks = facts.heads.map((head) => judgeHead(head));
  if (facts.denied.length > 0) {
    checks.push(
      problem("log rights", `role ${role} may not use ${facts.denied.map((one) => one.what).join(", ")}`, {
        means: "a server with this role can't start",
        sql: facts.denied.map((one) => one.grant),
      }),
    );
  } else checks.push(ok("log rights", `role ${role} may use all that a server uses`));
  return [...checks, ...guards, judgeInbox(facts), ...judgeNodes(facts)];
}

function judgeHead({ log, epoch, position, first, isWhole, snapshot }: LogFacts["heads"][number]): Check {
  const seen = `"${log}": records ${first} to ${position}, epoch ${epoch}, snapshot at ${snapshot}`;
  if (isWhole) return ok("log", seen);
  return problem("log", seen, {
    means: "its first or its last record is not there: rows were deleted by hand, or a restore was not complete",
    advice: "Stop the servers, restore the database to one point in time, then verify with GET /api/events/verify.",
  });
}

function judgeGuards({ triggersOff, triggersMissing }: LogFacts, schema: string): Check[] {
  if (triggersMissing.length > 0) {
    return [
      problem("log triggers", `${triggersMissing.join(", ")} gone`, {
        means: "nothing refuses a change of what the log has said",
        advice: "Somebody dropped them. Restore the tables' definition: tenure schema print shows it.",
      }),
    ];
  }
  if (triggersOff.length === 0) return [ok("log triggers", "all on")];
  return [
    problem("log triggers", `${triggersOff.map((one) => one.name).join(", ")} switched off`, {
      means: "nothing refuses a change of what the log has said",
      sql: triggersOff.map((one) => `alter table ${quoteName(schema)}.${one.table} enable trigger ${one.name};`),
    }),
  ];
}

function judgeInbox({ inbox }: LogFacts): Check {
  const oldest = inbox.oldestMs === null ? "" : `, the oldest for ${Math.round(inbox.oldestMs / 1_000)} s`;
  const seen = inbox.count === 0 ? "empty" : `${inbox.count} submissions wait${oldest}`;
  if (inbox.oldestMs === null || inbox.oldestMs <= INBOX_MS_MAX) return ok("inbox", seen);
  return warning("inbox", seen, {
    means: "nobody takes them over: no server leads, or it has no room for more jobs",
    advice: "Look at the servers' logs, and at GET /v1/cluster of any of them.",
  });
}

function judgeNodes({ nodes }: LogFacts): Check[] {
  const silent = nodes.filter((node) => node.silentMs > SILENT_MS_MAX);
  const names = nodes.map((node) => node.node).join(", ");
  if (silent.length === 0) return [ok("nodes", names === "" ? "none" : names)];
  const gone = silent.map((node) => `${node.node} for ${Math.round(node.silentMs / 1_000)} s`).join(", ");
  return [
    warning("nodes", `${names}; silent: ${gone}`, {
      means: "those did not end in order, or can't reach the database",
      advice: "Start them, or leave them: a day after their end they are forgotten.",
    }),
  ];
}
