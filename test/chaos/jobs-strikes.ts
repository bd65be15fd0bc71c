// One fault of `chaos jobs` on running servers or agents: does it, proves that it happened, and undoes it.

import { setTimeout as sleep } from "node:timers/promises";
import { assertNever } from "../../src/core/kit/assert.ts";
import type { Random } from "../../src/core/kit/random.ts";
import { toSnake } from "../../src/contract/snake-case.ts";
import { type TenureNode, waitFor } from "../servers/index.ts";
import type { Agents, AgentPlace } from "./jobs-agents.ts";
import type { AgentFault, ServerFault } from "./jobs-faults.ts";
import type { Ghosts } from "./jobs-ghosts.ts";
import type { JobsStage } from "./jobs-stage.ts";
import { isStopped } from "./stopped.ts";
import type { Submission, Submitters } from "./jobs-submitters.ts";

/** On a busy machine servers that were killed take half a minute to start again. */
const LEADER_MS_MAX = 90_000;
/** Past every election timeout. */
const STOP_MS = { min: 1_200, max: 2_200 };
const AWAY_MS_MAX = 500;
/** Below an election timeout: the leader still takes what comes. */
const STRAND_MS = 200;
/** Requests that are sent into a leader that can't commit them. */
const INSIDE = 4;
const CUT_MS = { min: 200, max: 900 };
const INSIDE_MS_MAX = 60_000;

/** How often it hits the agent that has most in its hands, and not just any. */
const BUSIEST_SHARE = 0.7;
/** For an agent that was started to have a job: to strike one that has none proves nothing. */
const BUSY_MS_MAX = 30_000;

export interface StrikesOptions {
  readonly stage: JobsStage;
  readonly agents: Agents;
  readonly submitters: Submitters;
  readonly ghosts: Ghosts;
  readonly random: Random;
  readonly leaseMs: number;
  /** The faults are over: nothing is waited for any more. */
  readonly isCalm: () => boolean;
}

export class JobsStrikes {
  readonly #options: StrikesOptions;
  readonly #inside: Promise<void>[] = [];
  #insideCount = 0;

  constructor(options: StrikesOptions) {
    this.#options = options;
  }

  /** Requests that were sent into leaders while they were stopped. */
  get inside(): number {
    return this.#insideCount;
  }

  /** All of those were answered, or never will be. */
  async settled(): Promise<void> {
    await Promise.all(this.#inside);
  }

  // ---- servers -------------------------------------------------------------------------------------

  async server(kind: ServerFault): Promise<void> {
    const { stage, random } = this.#options;
    const { node: leader } = await stage.leader(LEADER_MS_MAX);
    const followers = stage.nodes.filter((node) => node !== leader);
    switch (kind) {
      case "kill-leader":
        return this.#kill([leader]);
      case "kill-follower":
        return this.#kill([followers[random.below(followers.length)]!]);
      case "blackout":
        return this.#kill(stage.nodes);
      case "stop-leader":
        return this.#stopLeader(leader);
      case "term-leader":
        await leader.term();
        return stage.start(leader);
      case "stop-followers":
        return this.#stopFollowers(leader, followers);
      case "stop-follower":
        return this.#stopFollower(followers[random.below(followers.length)]!);
      case "wipe-follower":
        return stage.wipe(followers[random.below(followers.length)]!);
      case "join":
        return stage.joinAndLeave(random.between(0, AWAY_MS_MAX));
      case "strand-leader":
        return this.#strand(leader, followers);
      case "restart-database":
        return stage.restartDatabase();
      case "cut-clients":
        return this.#cut(leader);
      case "reset-clients": {
        const proxy = stage.proxy(leader);
        await waitFor("clients of the leader", () => proxy.connections > 0);
        return proxy.reset();
      }
      default:
        return assertNever(kind, "strike");
    }
  }

  async #kill(nodes: readonly TenureNode[]): Promise<void> {
    const pids = nodes.map(({ pid }) => pid);
    await Promise.all(nodes.map((node) => node.kill9()));
    const { random, stage } = this.#options;
    await sleep(random.between(0, AWAY_MS_MAX));
    for (const [at, node] of nodes.entries()) {
      stage.start(node);
      if (node.pid === pids[at]) throw new Error(`${node.id} was killed and lives on`);
    }
  }

  async #stopLeader(leader: TenureNode): Promise<void> {
    const { stage, random } = this.#options;
    leader.stop();
    await waitFor(`${leader.id} to be stopped`, () => isStopped(leader.pid));
    this.#sendInside(leader);
    await sleep(random.between(STOP_MS.min, STOP_MS.max));
    await waitFor("another leader", async () => (await stage.leader(LEADER_MS_MAX)).node !== leader, LEADER_MS_MAX);
    leader.cont();
  }

  async #stopFollowers(leader: TenureNode, followers: readonly TenureNode[]): Promise<void> {
    const { random } = this.#options;
    for (const follower of followers) follower.stop();
    try {
      await waitFor("followers to be stopped", () => followers.every(({ pid }) => isStopped(pid)));
      this.#sendInside(leader);
      await sleep(random.between(STOP_MS.min, STOP_MS.max));
    } finally {
      for (const follower of followers) follower.cont();
    }
  }

  async #stopFollower(follower: TenureNode): Promise<void> {
    const { random } = this.#options;
    follower.stop();
    try {
      await waitFor("a follower to be stopped", () => isStopped(follower.pid));
      await sleep(random.between(STOP_MS.min, STOP_MS.max));
    } finally {
      follower.cont();
    }
  }

  async #strand(leader: TenureNode, followers: readonly TenureNode[]): Promise<void> {
    await Promise.all(followers.map((follower) => follower.kill9()));
    this.#sendInside(leader);
    await sleep(STRAND_MS);
    await leader.kill9();
    const { stage } = this.#options;
    for (const follower of followers) stage.start(follower);
    // It must not bring what only it has.
    await stage.leader(LEADER_MS_MAX);
    stage.start(leader);
  }

  /** Into a process that is stopped the kernel takes them: it reads them when it goes on. */
  #sendInside(leader: TenureNode): void {
    for (let sent = 0; sent < INSIDE; sent++) this.#inside.push(this.#submitTo(leader));
    this.#insideCount += INSIDE;
  }

  async #submitTo(node: TenureNode): Promise<void> {
    const { stage, submitters } = this.#options;
    const { tag, job } = submitters.newJob();
    const submission: Submission = submitters.note(tag);
    try {
      const body = toSnake(job) as object;
      const answer = await node.call<{ id?: string; error?: string }>("/v1/jobs", {
        key: stage.key,
        body,
        limitMs: INSIDE_MS_MAX,
      });
      const { id, error = "no error" } = answer.body;
      if (id !== undefined) submission.fate = { kind: "acknowledged", ids: [id] };
      else submission.fate = { kind: error === "OUTCOME_UNKNOWN" ? "unknown" : "refused", why: error };
    } catch (error) {
      submission.fate = { kind: "unknown", why: String(error) };
    }
    if (submission.fate.kind === "unknown") submission.wasUnknown = true;
  }

  async #cut(leader: TenureNode): Promise<void> {
    const { stage, random } = this.#options;
    const proxy = stage.proxy(leader);
    await waitFor("clients of the leader", () => proxy.connections > 0);
    proxy.cut((["both", "to-server", "to-client"] as const)[random.below(3)]);
    await sleep(random.between(CUT_MS.min, CUT_MS.max));
    await proxy.heal(random.chance(0.5) ? "resume" : "reset");
  }

  // ---- agents --------------------------------------------------------------------------------------

  async agent(kind: AgentFault): Promise<void> {
    const { agents, random, leaseMs, ghosts } = this.#options;
    const place = random.chance(BUSIEST_SHARE) ? busiest(agents) : agents.places[random.below(agents.places.length)]!;
    const isBusy = (): boolean => this.#options.isCalm() || place.openLeases().length > 0;
    await waitFor("an agent with a job", isBusy, BUSY_MS_MAX).catch(() => undefined);
    switch (kind) {
      case "kill-agent": {
        await place.kill();
        ghosts.haunt(place);
        // Its name taken over, or its leases over: the job goes to another in both cases.
        await sleep(random.chance(0.5) ? 0 : leaseMs * 1.3);
        return place.start();
      }
      case "stop-agent":
        return this.#stopAgent(place);
      case "term-agent": {
        await place.term();
        ghosts.haunt(place);
        return place.start();
      }
      default:
        return assertNever(kind, "strike");
    }
  }

  async #stopAgent(place: AgentPlace): Promise<void> {
    const { random, leaseMs, ghosts } = this.#options;
    place.signal("SIGSTOP");
    await waitFor("an agent to be stopped", () => isStopped(place.pid));
    ghosts.haunt(place);
    await sleep(leaseMs * random.between(1.2, 1.8));
    place.signal("SIGCONT");
  }
}

function busiest({ places }: Agents): AgentPlace {
  const held = places.map((place) => ({ place, leases: place.openLeases().length }));
  return held.toSorted((a, b) => b.leases - a.leases)[0]!.place;
}
