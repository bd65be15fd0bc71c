// Reads at one simulated server: the handlers of production's API over its jobs, its views and what it has applied, without the
// web around them.

import { jobHandlers } from "../../api/handlers/jobs.ts";
import { API_LIMITS, type JobsParts } from "../../api/options.ts";
import type { Call, Service } from "../../api/handlers/handler.ts";
import type { JobState } from "../../core/jobs/model.ts";

/** What is judged of a job in an answer. */
export interface ShownJob {
  readonly id: string;
  readonly state: JobState;
  readonly jobEpoch: number;
}

export interface ShownPage {
  readonly jobs: readonly ShownJob[];
  /** As of here, by the answer itself. */
  readonly position: number;
  readonly isLast: boolean;
}

export type How = "linearizable" | "local";

export interface Reading {
  job(jobId: string, how: How): Promise<ShownJob>;
  list(state: JobState | undefined, limit: number, how: How): Promise<ShownPage>;
}

export interface ReadingParts extends Pick<Service, "clock" | "cluster"> {
  readonly node: string;
  readonly parts: JobsParts;
}

interface Wire {
  readonly id: string;
  readonly state: JobState;
  readonly job_epoch: number;
}

/** What handlers of production work with. */
export function apiOf({ node, clock, cluster, parts }: ReadingParts): [Service, JobsParts] {
  return [{ cluster, limits: API_LIMITS, nodeId: node, clock } as unknown as Service, parts];
}

export function readingOf(parts: ReadingParts): Reading {
  const handlers = jobHandlers(...apiOf(parts));
  return {
    job: async (id, consistency) => {
      const { body } = (await handlers.job({ params: { id }, query: { consistency } } as Call<"job">)) as {
        body: Wire;
      };
      return shownOf(body);
    },
    list: async (state, limit, consistency) => {
      const answer = await handlers.jobs({ query: { consistency, state, limit } } as Call<"jobs">);
      const { body } = answer as { body: string };
      const page = JSON.parse(body) as { jobs: Wire[]; next: string | null; position: number };
      return { jobs: page.jobs.map(shownOf), position: page.position, isLast: page.next === null };
    },
  };
}

function shownOf({ id, state, job_epoch: jobEpoch }: Wire): ShownJob {
  return { id, state, jobEpoch };
}
