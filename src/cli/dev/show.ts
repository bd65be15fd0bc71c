// What `npm start` knows of its cluster and tells of it: on a screen where there is a terminal, else in lines.

import type { ElectionView } from "../../client/index.ts";
import type { ClusterStatus } from "../cluster/view.ts";
import type { DevCluster } from "./cluster.ts";
import { HAPPENED_KEPT_MAX, PLAIN_EVERY_MS, RATE_WINDOW_MS } from "./limits.ts";
import type { DevLoad } from "./load.ts";
import {
  adviceText,
  changesBetween,
  type DevModel,
  EMPTY_STATUS,
  plainText,
  type ScreenSize,
  screenText,
} from "./view.ts";

const SCREEN = {
  enter: "\u001B[?1049h\u001B[?25l",
  leave: "\u001B[?25h\u001B[?1049l",
  home: "\u001B[H\u001B[J",
} as const;

/** What is known, and what is told; everything else asks it. */
export class Show {
  status: ClusterStatus = EMPTY_STATUS;
  hasLed = false;
  cluster: DevCluster | null = null;
  load: DevLoad | null = null;
  readonly #startedMs = performance.now();
  readonly #isScreen: boolean;
  /** Standard output is the summary's alone, where one is asked for. */
  readonly #out: NodeJS.WriteStream;
  readonly #happened: string[] = [];
  #election: ElectionView | null = null;
  #finished: { readonly atMs: number; readonly jobs: number }[] = [];
  #drawnMs = Number.NEGATIVE_INFINITY;

  constructor(isForPrograms: boolean) {
    this.#isScreen = !isForPrograms && process.stdout.isTTY && process.env["TERM"] !== "dumb";
    this.#out = isForPrograms ? process.stderr : process.stdout;
  }

  begin(): void {
    if (this.#isScreen) this.#out.write(SCREEN.enter);
    this.tell("starting three nodes");
  }

  end(): void {
    if (!this.#isScreen) return;
    this.#out.write(SCREEN.leave);
    for (const line of this.#happened.slice(-HAPPENED_KEPT_MAX)) this.#out.write(`${line}\n`);
  }

  tell(text: string): void {
    const line = `${((performance.now() - this.#startedMs) / 1_000).toFixed(3).padStart(8)} s  ${text}`;
    this.#happened.push(line);
    if (this.#happened.length > HAPPENED_KEPT_MAX) this.#happened.shift();
    if (!this.#isScreen) this.#out.write(`${line}\n`);
    else this.draw();
  }

  saw(status: ClusterStatus, elections: readonly ElectionView[]): void {
    const nowMs = performance.now();
    this.#election = elections.find(({ stage, result }) => stage === "vote" && result === "won") ?? this.#election;
    const changes = changesBetween(this.status, status, this.#election);
    const isNewLeader = status.leader !== null && status.leader !== this.status.leader;
    this.status = status;
    if (status.leader !== null) this.hasLed = true;
    for (const change of changes) this.tell(change);
    if (isNewLeader && !this.#isScreen) {
      this.tell(adviceText(this.#model(nowMs).nodes.find(({ id }) => id === status.leader)));
    }
  }

  /** Something was done to the leader just now. */
  mark(cause: string, text: string): void {
    this.load?.mark(cause, text, this.status.view?.term ?? 0);
  }

  /** Three nodes vote, run, and agree on who leads. */
  get isWhole(): boolean {
    const { leader, rows } = this.status;
    const voters = rows.filter(({ member, own }) => member.kind === "voter" && own !== null);
    const nodes = this.cluster?.nodes(performance.now()) ?? [];
    return leader !== null && voters.length === nodes.length && nodes.every(({ state }) => state === "running");
  }

  counted(jobs: number): void {
    const atMs = performance.now();
    this.#finished = [...this.#finished.filter((one) => atMs - one.atMs <= RATE_WINDOW_MS), { atMs, jobs }];
  }

  draw(): void {
    const nowMs = performance.now();
    if (this.#isScreen) {
      this.#drawnMs = nowMs;
      this.#out.write(SCREEN.home + screenText(this.#model(nowMs), this.#size).replaceAll("\n", "\u001B[K\n"));
    } else if (nowMs - this.#drawnMs >= PLAIN_EVERY_MS && this.status.view !== null) {
      this.#drawnMs = nowMs;
      this.tell(plainText(this.#model(nowMs)));
    }
  }

  get #size(): ScreenSize {
    return { rows: this.#out.rows, columns: this.#out.columns };
  }

  #model(nowMs: number): DevModel {
    const [first, last] = [this.#finished[0], this.#finished.at(-1)];
    const spanMs = first === undefined || last === undefined ? 0 : last.atMs - first.atMs;
    return {
      uptimeMs: nowMs - this.#startedMs,
      nodes: this.cluster?.nodes(nowMs) ?? [],
      status: this.status,
      election: this.#election,
      jobsPerSecond: spanMs < RATE_WINDOW_MS / 4 ? null : (Math.max(0, last!.jobs - first!.jobs) * 1_000) / spanMs,
      accepted: this.load?.accepted ?? 0,
      failoverMs: this.load?.failovers.at(-1)?.ms ?? null,
      page: this.cluster?.page ?? null,
      access: this.cluster === null ? null : accessText(this.cluster),
      happened: this.#happened,
      directory: this.cluster?.directory ?? "…",
    };
  }
}

export function accessText({ urls, key }: DevCluster): string {
  return `export TENURE_URL=${urls.join(",")} TENURE_API_KEY=${key}`;
}
