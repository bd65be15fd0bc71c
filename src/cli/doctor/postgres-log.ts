// What the doctor says of a log that servers keep in Postgres: rights, guards, whether its ends are there, what waits in the
// inbox, and which nodes are silent. Pure; postgres-log-look.ts gathers the facts.

import { INBOX_MS_MAX, LOG_NODE_SILENT_MS_MAX } from "./limits.ts";
import { quoteName, type LogFacts } from "./postgres.ts";
import { type Check, ok, problem, warning } from "./report.ts";

export function judgeLog(facts: LogFacts, schema: string, role: string): Check[] {
  const guards = judgeGuards(facts, schema);
  if (!facts.isReadable) return [ok("log", `role ${role} may not read it: no server runs with this role`), ...guards];
  const strays = judgeStrays(facts, schema);
  if (facts.heads.length === 0) return [ok("log", "no server keeps its log here"), ...guards, ...strays];
  const checks = facts.heads.map((head) => judgeHead(head));
  if (facts.denied.length > 0) {
    checks.push(
      problem("log rights", `role ${role} may not use ${facts.denied.map((one) => one.what).join(", ")}`, {
        means: "a server with this role can't start",
        sql: facts.denied.map((one) => one.grant),
      }),
    );
  } else checks.push(ok("log rights", `role ${role} may use all that a server uses`));
  return [...checks, ...guards, judgeInbox(facts), ...strays, ...judgeNodes(facts)];
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

/** Nobody else ever looks at them: what was committed waits without a word. */
function judgeStrays({ strays, heads }: LogFacts, schema: string): Check[] {
  if (strays.length === 0) return heads.length === 0 ? [] : [ok("lost submissions", "none")];
  const count = strays.reduce((sum, stray) => sum + stray.count, 0);
  const seen = `${count} submissions to ${strays.map(({ log }) => literal(log)).join(", ")}, which no server keeps`;
  const [head] = heads;
  if (head === undefined) {
    return [
      warning("lost submissions", seen, {
        means: "they wait for a server: none has ever run with this database and schema",
        advice: "Start one (tenure server start --backend …); or give tenure_submit the schema of the servers.",
      }),
    ];
  }
  const known = heads.map(({ log }) => literal(log)).join(", ");
  return [
    problem("lost submissions", seen, {
      means: `these jobs never run: the last argument of tenure_submit named a log that there is not; there is ${known}`,
      advice: "Leave that argument out where they are submitted, then hand over what waits:",
      sql: strays.map(
        ({ log }) =>
          `update ${quoteName(schema)}.tenure_inbox set log = ${literal(head.log)} where log = ${literal(log)};`,
      ),
    }),
  ];
}

/** Of SQL. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function judgeNodes({ nodes }: LogFacts): Check[] {
  const silent = nodes.filter((node) => node.silentMs > LOG_NODE_SILENT_MS_MAX);
  const names = nodes.map((node) => node.node).join(", ");
  const live = nodes.filter((node) => node.silentMs <= LOG_NODE_SILENT_MS_MAX);
  const twins = live.filter(({ node, url }) => live.some((one) => one.url === url && one.node !== node));
  if (twins.length > 0) {
    return [
      problem("nodes", `${names}; with one URL: ${twins.map(({ node, url }) => `${node} ${url}`).join(", ")}`, {
        means: "clients that are sent to the leader may come to another node, and then go round in circles",
        advice: "Give each its own URL: api.advertise in its configuration, or TENURE_API_ADVERTISE.",
      }),
    ];
  }
  if (silent.length === 0) return [ok("nodes", names === "" ? "none" : names)];
  const gone = silent.map((node) => `${node.node} for ${Math.round(node.silentMs / 1_000)} s`).join(", ");
  return [
    warning("nodes", `${names}; silent: ${gone}`, {
      means: "those did not end in order, or can't reach the database",
      advice: "Start them, or leave them: a day after their end they are forgotten.",
    }),
  ];
}
