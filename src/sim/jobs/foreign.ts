// Pages of another site, brought to the servers of a run as links bring them: verified on what the server that is asked has applied,
// late, twice, overlapping, and to whoever happens to be asked. The other site is a script with signatures made of hashes.
//
// What must hold, whatever fails meanwhile (oracle/arrivals.ts): every event has one arrival number, the same on all servers.

import type { Random } from "../../core/kit/random.ts";
import type { LineState } from "../../core/mesh/model.ts";
import { checkPage } from "../../core/mesh/proof/index.ts";
import { fakeVerify } from "../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../core/mesh/test-site.ts";
import type { PageReceived, VerifiedPage } from "../../controller/mesh/receipts/receipts-reign.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Owner } from "../kernel/index.ts";
import type { JobsCluster, JobsServer } from "./cluster.ts";
import { post } from "./post.ts";
import { reached } from "./probes.ts";

const PAGE_EVENTS_MAX = 6;
const PAUSE_MS: readonly [number, number] = [5, 120];
/** How far its clock is from that of the run's machines, at most. */
const SKEW_MS = 900;
/** How long it takes to verify what has come. */
const VERIFYING_MS: readonly [number, number] = [0, 30];
/** Codes that say that nothing is known to be written. */
const NOT_NOW: readonly string[] = [
  "NOT_LEADER",
  "OUTCOME_UNKNOWN",
  "OVERLOADED",
  "UNCOMMITTED_LIMIT",
  "TRANSFER_IN_PROGRESS",
  "ERR_NO_LEADER",
  "NOT_SUPPORTED",
];

export class ForeignSites {
  readonly #cluster: JobsCluster;
  readonly #digest: Digest;
  readonly #random: Random;
  readonly #owner: Owner;
  readonly #sites: readonly TestSite[];
  readonly #states = new Map<string, LineState>();
  #brought = 0;
  #isOver = false;

  constructor(cluster: JobsCluster, digest: Digest) {
    this.#cluster = cluster;
    this.#digest = digest;
    this.#random = cluster.random.fork("foreign");
    this.#owner = cluster.world.scheduler.owner("foreign");
    this.#sites = ["far", "near"].map((name) => new TestSite(ringOf(name, ["n1"], digest), digest));
  }

  start(): void {
    if (this.#cluster.knobs.foreignEvents > 0) this.#next(0);
  }

  /** No more events; what there is is brought until the leader has it. */
  stop(): void {
    this.#isOver = true;
  }

  /** Null: every server has all events of all sites. */
  difference(): string | null {
    if (this.#cluster.knobs.foreignEvents === 0) return null;
    for (const name of this.#cluster.names) {
      for (const site of this.#sites) {
        const size = this.#cluster.server(name)?.mesh.state.line(site.line)?.size ?? 0;
        if (size !== site.size) return `${name} has ${size} of ${site.size} events of ${site.line}`;
      }
    }
    return null;
  }

  #next(times: number): void {
    const random = this.#random.fork(`turn/${times}`);
    this.#cluster.later(this.#owner, random.between(...PAUSE_MS), () => {
      const site = random.pick(this.#sites);
      this.#write(site, random);
      if (!this.#isOver || this.difference() !== null) {
        for (let copies = random.chance(0.3) ? 2 : 1; copies > 0; copies--)
          this.#bring(this.#isOver ? this.#lacking() : site, random.fork(`copy/${copies}`));
      }
      this.#next(times + 1);
    });
  }

  #lacking(): TestSite {
    const leader = this.#cluster.server(this.#cluster.leader() ?? "");
    return this.#sites.find(({ line, size }) => leader?.mesh.state.line(line)?.size !== size) ?? this.#sites[0]!;
  }

  #write(site: TestSite, random: Random): void {
    const { knobs, world, names } = this.#cluster;
    if (this.#isOver || this.#brought >= knobs.foreignEvents) return;
    const nowMs = world.node(names[0]!).process.machine.wallMs();
    for (let count = 1 + random.below(PAGE_EVENTS_MAX); count > 0; count--) {
      const timestamp = Math.max(1, Math.floor(nowMs + random.between(-SKEW_MS, SKEW_MS)));
      site.write({ timestamp, ...(random.chance(0.2) ? { eventType: "build:log" } : {}) });
      this.#brought++;
    }
  }

  #bring(site: TestSite, random: Random): void {
    const cluster = this.#cluster;
    const to = random.chance(0.8) ? (cluster.leader() ?? random.pick(cluster.names)) : random.pick(cluster.names);
    let verified: VerifiedPage | null = null;
    post<readonly PageReceived[]>(cluster, {
      random,
      from: null,
      to,
      ask: async (server) => {
        verified = this.#verified(site, server, random);
        if (verified === null) return [];
        // What is applied meanwhile makes it a page that was verified on something older.
        await server.pause(random.between(...VERIFYING_MS));
        return server.receive([verified]);
      },
      judge: (_asked, answer, server) => {
        if (answer.ok) return this.#judge(to, server, verified, answer.value);
        if (answer.error.code === "OUTCOME_UNKNOWN") reached(cluster.probes, "foreign-page-unknown");
        if (NOT_NOW.includes(answer.error.code)) return;
        cluster.world.report(to, new Error(`${to} answered a link with ${answer.error.code}: ${answer.error.message}`));
      },
      arrived: () => undefined,
    });
  }

  #judge(to: string, { mesh }: JobsServer, verified: VerifiedPage | null, outcomes: readonly PageReceived[]): void {
    const { probes, world } = this.#cluster;
    for (const { kind } of outcomes) {
      if (kind === "duplicate") reached(probes, "foreign-page-duplicate");
      if (kind === "again") reached(probes, "foreign-page-again");
      if (kind !== "accepted" || verified === null) continue;
      reached(probes, "foreign-page-accepted");
      const size = mesh.state.line(verified.page.line)?.size ?? 0;
      if (size < verified.state.size)
        world.report(to, new Error(`${to} has accepted a page up to ${verified.state.size}, and has ${size}`));
    }
  }

  /** As a link does it: on what this server has applied. Null: it has all there is. */
  #verified(site: TestSite, { mesh }: JobsServer, random: Random): VerifiedPage | null {
    const known = mesh.state.line(site.line)?.size ?? 0;
    if (known >= site.size) return null;
    const after = Math.max(0, known - (random.chance(0.3) ? random.below(4) : 0));
    const size = Math.min(site.size, known + 1 + random.below(2 * PAGE_EVENTS_MAX));
    const page = site.page(after, size);
    const from = this.#stateAt(site, known);
    const check = checkPage({ state: from, page, digest: this.#digest, verify: fakeVerify(this.#digest) });
    for (;;) {
      const step = check.next();
      if (step.done !== true) continue;
      if (step.value.kind !== "accepted") throw new Error(`an honest page is ${step.value.kind}`);
      const { state, events } = step.value;
      this.#states.set(`${site.line}/${size}`, state);
      const timestamps = events.flatMap((one) => (one.kind === "event" ? [one.event.timestamp] : []));
      return { page, from, state, timestamps };
    }
  }

  #stateAt(site: TestSite, size: number): LineState {
    const state = size === 0 ? site.start : this.#states.get(`${site.line}/${size}`);
    if (state === undefined) throw new Error(`a server knows ${site.line} up to ${size}, which nobody has brought`);
    return state;
  }
}
