// An agent process of `chaos jobs`: one or several agents of `tenure/agent`, as anybody would run them. What they are given
// and told passes through this file, which writes it down and changes nothing.
//
// SIGTERM stops them in order. A handler works for as long as its payload says, and half of them do not listen to their
// signal: such a one goes on after its lease is lost, and its result must be refused.

import { appendFileSync, openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Agent, createAgent, type JobContext } from "../../src/entry/agent.ts";
import { type Client, createClient, type ResultReply, TenureError } from "../../src/entry/client.ts";
import {
  AGENT_VARIABLE,
  type AgentConfig,
  type AgentLine,
  type ChaosPayload,
  JOB_KIND,
  type SentLine,
  type ToldLine,
} from "./jobs-journal.ts";

const DRAIN_MS = 300;

const config = JSON.parse(process.env[AGENT_VARIABLE] ?? "null") as AgentConfig;
const journal = openSync(config.journal, "a");
let runs = 0;

const agents = config.names.map((name) => agentOf(name));
let isStopping = false;
process.on("SIGTERM", () => {
  isStopping = true;
  void Promise.all(agents.map((agent) => agent.stop({ drainMs: DRAIN_MS }))).then(() => process.exit(0));
});
await Promise.all(
  agents.map((agent) =>
    agent.start().catch((error: unknown) => {
      if (!isStopping) throw error;
    }),
  ),
);

function write(line: AgentLine): void {
  appendFileSync(journal, `${JSON.stringify(line)}\n`);
}

function agentOf(name: string): Agent {
  const leases = new Map<string, string>();
  const { urls, key, capacity, leaseMs } = config;
  const agent = createAgent<{ chaos: { payload: ChaosPayload; result: object } }>({
    client: { work: noted(name, leases, createClient({ urls, key }).work) },
    name,
    capacity,
    leaseMs,
    onError: (error) => {
      if (TenureError.is(error) && error.code === "UNAUTHENTICATED")
        write({ is: "denied", agent: name, why: error.message });
    },
    handlers: {
      [JOB_KIND]: async ({ id, payload }, context) => {
        const mark = `${process.pid}.${++runs}`;
        write({ is: "started", agent: name, job: id, lease: leases.get(`${id} ${context.attempt}`) ?? "none" });
        await work(payload, context);
        return { tag: payload.tag, mark };
      },
    },
  });
  void agent.ended.then((error) => {
    if (error !== null) write({ is: "ended", agent: name, why: error.message });
  });
  return agent;
}

async function work({ workMs, isDeaf, isTalkative }: ChaosPayload, context: JobContext): Promise<void> {
  if (isTalkative) {
    context.log(`attempt ${context.attempt}\n`);
    context.progress(0.5, "half");
  }
  await sleep(workMs, undefined, isDeaf ? {} : { signal: context.signal });
}

function verdictOf(answer: ResultReply, leaderEpoch: number): ToldLine["verdict"] {
  if (answer.ok) return "taken";
  if (answer.code === "NOT_FOUND") return "not-found";
  return answer.leaderEpoch === leaderEpoch ? "stale" : "other-leader";
}

/** The SDK's own two calls, with what was said in them. */
function noted(agent: string, leases: Map<string, string>, desk: Client["work"]): Client["work"] {
  const sent = new Map<string, SentLine>();
  return {
    lease: async (request, options) => {
      const answer = await desk.lease(request, options);
      const { session } = request.agent;
      for (const { jobId, jobEpoch, leaseId, leaderEpoch, attempt } of answer.leases) {
        leases.set(`${jobId} ${attempt}`, leaseId);
        write({ is: "leased", agent, session, job: jobId, lease: leaseId, jobEpoch, leaderEpoch, attempt });
      }
      for (const { leaseId, outcome } of answer.renewed) {
        const line = sent.get(leaseId);
        if (outcome === "committed" && line !== undefined) write({ ...line, is: "told", verdict: "taken" });
      }
      return answer;
    },
    results: async (session, results, options) => {
      const lines = results.map(({ jobId, leaseId, outcome }): SentLine => {
        const mark = outcome.kind === "completed" ? (outcome.result as { mark: string }).mark : null;
        return { is: "sent", agent, job: jobId, lease: leaseId, outcome: outcome.kind, mark };
      });
      for (const line of lines) {
        sent.set(line.lease, line);
        write(line);
      }
      const answers = await desk.results(session, results, options);
      for (const [at, answer] of answers.entries()) {
        const verdict = verdictOf(answer, results[at]!.leaderEpoch);
        write({ ...lines[at]!, is: "told", verdict });
      }
      return answers;
    },
  };
}
