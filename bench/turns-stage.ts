// A real server of one node whose turns are measured from within (turns-probe.ts), and what the rows of the benchmark share.

import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { CALM_ELECTION, OPERATOR_KEY, startTenureCluster, type TenureCluster, waitFor } from "../test/servers/index.ts";
import { rounded, say } from "./stage.ts";

const PROBE = new URL("./turns-probe.ts", import.meta.url).href;
const PROFILE = new URL("./turns-profile.ts", import.meta.url).href;
/** Whoever makes the load waits for the server, not the server for it: a turn that waits for a processor looks long. */
const LOAD_NICENESS = 10;
const SETTLE_MS = 1_000;

export interface Row {
  readonly what: string;
  /** In wall time: what a heartbeat waits for at worst. */
  readonly longest_ms: number;
  readonly p99_ms: number;
  /** The most processor time that one turn took: the longest turn of a machine that is never busy with anything else. */
  readonly longest_cpu_ms: number;
  readonly turns: number;
}

interface Told {
  readonly turns: number;
  readonly longestMs: number;
  readonly p99Ms: number;
  readonly longestCpuMs: number;
}

export class Stage {
  readonly cluster: TenureCluster;
  readonly #isProfiled: boolean;
  #told: Told[] = [];
  #rest = "";

  private constructor(cluster: TenureCluster, isProfiled: boolean) {
    this.cluster = cluster;
    this.#isProfiled = isProfiled;
  }

  /** `isProfiled`: what ran in the longest turns is printed too. */
  static async start(flags: readonly string[] = [], isProfiled = false): Promise<Stage> {
    const heard: { stage?: Stage } = {};
    const cluster = await startTenureCluster({
      nodes: 1,
      election: CALM_ELECTION,
      prepare: (node) => {
        node.nodeFlags = [...probes(isProfiled), ...flags];
        node.told = (text) => heard.stage?.hear(text);
      },
    });
    setPriority(LOAD_NICENESS);
    const stage = new Stage(cluster, isProfiled);
    heard.stage = stage;
    return stage;
  }

  get url(): string {
    return this.cluster.nodes[0]!.url;
  }

  get key(): string {
    return OPERATOR_KEY;
  }

  /** Starts the node again without the flags that it had, and measures from when it is up: to load its program is one turn. */
  async restart(): Promise<void> {
    const [node] = this.cluster.nodes;
    await node!.kill9();
    node!.nodeFlags = probes(this.#isProfiled);
    node!.start();
    await waitFor("the node to be up", () => node!.log().includes('"event":"listening"'));
    const { longestMs } = await this.#figures();
    say(`started, with a longest turn of ${rounded(longestMs, 1)} ms`);
  }

  /** What the turns took while `work` was done; `warm` before it is not counted. */
  async measured(what: string, work: () => Promise<void>): Promise<Row> {
    await sleep(SETTLE_MS);
    await this.#figures();
    await work();
    return this.row(what);
  }

  async row(what: string): Promise<Row> {
    const { turns, longestMs, p99Ms, longestCpuMs } = await this.#figures();
    return {
      what,
      longest_ms: rounded(longestMs, 2),
      p99_ms: rounded(p99Ms, 2),
      longest_cpu_ms: rounded(longestCpuMs, 2),
      turns,
    };
  }

  end(): Promise<void> {
    return this.cluster.end();
  }

  async #figures(): Promise<Told> {
    this.#told = [];
    this.cluster.nodes[0]!.signal("SIGUSR2");
    await waitFor("the probe's figures", () => this.#told.length > 0);
    return this.#told[0]!;
  }

  /** What the server writes to its error stream. */
  hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("bench-turns ")) this.#told.push(JSON.parse(line.slice("bench-turns ".length)) as Told);
      else if (line.startsWith("bench-profile ")) say(line.slice("bench-profile ".length));
    }
  }
}

function probes(isProfiled: boolean): readonly string[] {
  // The figures come last: whoever has them may end the server.
  return [...(isProfiled ? ["--import", PROFILE] : []), "--import", PROBE];
}
