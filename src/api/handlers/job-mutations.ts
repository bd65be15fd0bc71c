// What submitters and agents do with jobs. Only the leader does it; elsewhere the port rejects with NOT_LEADER.

import {
  leaseCallOf,
  leaseMistake,
  resultCallOf,
  resultMistake,
  scheduleOf,
  specOf,
  toSnake,
} from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { AgentCaller, ResultAnswer } from "../../ports/jobs.ts";
import type { Answer, Call, Handlers, JobsParts, Service } from "./handler.ts";
import { shown } from "./jobs.ts";
import { fenced, requestOf, unkeyedEpoch } from "./mutation.ts";
import { Refusal } from "../refusal.ts";

type Ids = "submit" | "cancelJob" | "retryJob" | "lease" | "results" | "putSchedule" | "deleteSchedule";

export function jobMutations(service: Service, parts: JobsParts): Pick<Handlers, Ids> {
  const { jobs } = parts;
  return {
    submit: async (call) => {
      const { body } = call;
      const request = requestOf(service, call, body.leader_epoch);
      const specs = "jobs" in body ? body.jobs.map((one) => specOf(one)) : [specOf(body)];
      const ids = await fenced(service, unkeyedEpoch(request), () => jobs.submit(request, specs));
      return { body: "jobs" in body ? { ids } : { id: ids[0] } };
    },
    cancelJob: async (call) => {
      const request = requestOf(service, call, call.body.leader_epoch);
      const job = await fenced(service, unkeyedEpoch(request), () => jobs.cancel(request, call.params.id));
      return { body: shown(parts, job) };
    },
    retryJob: async (call) => {
      const request = requestOf(service, call, call.body.leader_epoch);
      const job = await fenced(service, unkeyedEpoch(request), () => jobs.retry(request, call.params.id));
      return { body: shown(parts, job) };
    },
    lease: (call) => lease(service, parts, call),
    results: (call) => results(service, parts, call),
    putSchedule: async (call) => {
      const request = requestOf(service, call, call.body.leader_epoch);
      const schedule = scheduleOf(call.params.name, call.body);
      await fenced(service, unkeyedEpoch(request), () => jobs.putSchedule(request, schedule));
      return { body: {} };
    },
    deleteSchedule: async (call) => {
      const request = requestOf(service, call, call.query.leader_epoch);
      await fenced(service, unkeyedEpoch(request), () => jobs.deleteSchedule(request, call.params.name));
      return { body: {} };
    },
  };
}

/** Answered also when the server stops meanwhile: what was renewed and reported is so, and the agent must know. */
async function lease(service: Service, { jobs }: JobsParts, call: Call<"lease">): Promise<Answer> {
  const { body, gone } = call;
  const mistake = leaseMistake(body);
  if (mistake !== null)
    throw new Refusal("BAD_REQUEST", `${mistake.field} ${mistake.message}.`, { field: mistake.field });
  const poll = service.polls.open(null, gone, call);
  try {
    const asked = { ...leaseCallOf(body), caller: agentCaller(call.caller) };
    const { takenFrom, ...answer } = await fenced(service, body.leader_epoch, () => jobs.lease(asked, poll.signal));
    if (poll.ended === "refused" && answer.leases.length === 0) call.admitAgain();
    if (takenFrom !== undefined) call.audit("takeOverAgent", `${body.agent.name} of ${takenFrom}`);
    return { body: toSnake(answer) };
  } catch (error) {
    const isRefused = TenureError.is(error) && error.code === "PERMISSION_DENIED";
    if (isRefused) call.audit("takeOverAgent", body.agent.name);
    throw error;
  } finally {
    poll.close();
  }
}

/** By name: a certificate that was renewed, or a key that was made anew under its name, is the same caller. */
function agentCaller({ how, name, role }: Call<"lease">["caller"]): AgentCaller {
  return { owner: how === "anonymous" ? how : `${how}:${name}`, mayTakeOver: role === "operator" };
}

async function results(service: Service, { jobs }: JobsParts, { body }: Call<"results">): Promise<Answer> {
  const given = "results" in body ? body.results : [body];
  for (const [at, one] of given.entries()) {
    const mistake = resultMistake(one);
    if (mistake === null) continue;
    const field = "results" in body ? `results[${at}].${mistake.field}` : mistake.field;
    throw new Refusal("BAD_REQUEST", `${field} ${mistake.message}.`, { field });
  }
  const calls = given.map((one) => resultCallOf(one));
  const answers = await fenced(service, undefined, () => jobs.results(body.session, calls));
  if ("results" in body) return { body: { results: answers.map((answer) => resultAnswer(answer)) } };
  const [answer] = answers;
  if (answer?.ok === false) throw new Refusal(answer.code, answer.message, { leader_epoch: answer.leaderEpoch });
  return { body: answer === undefined ? {} : resultAnswer(answer) };
}

function resultAnswer(answer: ResultAnswer): object {
  if (answer.ok) return toSnake(answer);
  const { ok, code: error, message, leaderEpoch } = answer;
  return toSnake({ ok, error, message, leaderEpoch });
}
