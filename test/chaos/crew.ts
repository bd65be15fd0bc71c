// The worker processes of a run: starts them, hears them, hurts them, and ends them in every case.
//
//   place ──start──▶ alive ──▶ gone (killed, told to end, or crashed: a crash is a finding)
//                    alive ◀──▶ stopped (SIGSTOP, SIGCONT)
//
// A place has a number, a proxy to the server, and one worker after the other. Worker n of place p is called `wp.n`, so
// that nobody's increments are mistaken for those of its predecessor.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { waitFor } from "../servers/index.ts";
import { Ledger } from "./ledger.ts";
import { CONFIG_VARIABLE, type Order, type Report, type WorkerConfig } from "./messages.ts";

const WORKER = fileURLToPath(new URL("worker.ts", import.meta.url));
const GRACE_MS = 20_000;
const STDERR_CHARS_MAX = 4_096;
const TROUBLES_MAX = 50;

/** Whatever ends this process ends them too, a stopped one included; one that runs ends with its channel anyway. */
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export interface Ack {
  readonly worker: string;
  readonly place: number;
  readonly epoch: number;
  readonly atMs: number;
}

export interface StaleCount {
  attempts: number;
  rejected: number;
  /** Sent while it was not yet known that the epoch was over: may end either way, the ledger judges. */
  early: number;
}

export type Configure = (place: number, name: string) => WorkerConfig;

export class Crew {
  ledger = new Ledger();
  readonly stale: StaleCount = { attempts: 0, rejected: 0, early: 0 };
  /** Reasons to fail. */
  readonly findings: string[] = [];
  /** What `lead` rejected with, next to what a worker gave up by itself: for people. */
  readonly troubles: string[] = [];
  acks = 0;
  last: Ack | undefined;
  readonly #configure: Configure;
  readonly #signal: AbortSignal;
  readonly #members = new Map<number, Member>();
  readonly #generations = new Map<number, number>();
  readonly #waiting = new Set<(ack: Ack) => void>();

  /** Aborting kills them all, and ends what waits for them. */
  constructor(configure: Configure, signal: AbortSignal) {
    this.#configure = configure;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.killAll(), { once: true });
  }

  get members(): readonly Member[] {
    return [...this.#members.values()];
  }

  get newestEpoch(): number {
    return this.last?.epoch ?? 0;
  }

  /** Increments that were acknowledged in the newest epoch. */
  acksInTerm = 0;

  at(place: number): Member {
    const member = this.#members.get(place);
    if (member === undefined) throw new Error(`nobody is at place ${place}`);
    return member;
  }

  start(place: number): Member {
    const generation = (this.#generations.get(place) ?? 0) + 1;
    this.#generations.set(place, generation);
    const name = `w${place}.${generation}`;
    const member: Member = new Member(name, place, this.#configure(place, name), (report) =>
      this.#hear(member, report),
    );
    this.#members.set(place, member);
    void member.gone.then(() => {
      const { crash } = member;
      if (crash !== undefined) this.findings.push(crash);
    });
    return member;
  }

  /** The first increment that is acknowledged in a higher epoch; or after `sinceMs`, in whichever epoch. */
  nextAck(afterEpoch: number, limitMs: number, sinceMs = Infinity): Promise<Ack> {
    const isNext = (ack: Ack): boolean => ack.epoch > afterEpoch || ack.atMs >= sinceMs;
    if (this.last !== undefined && isNext(this.last)) return Promise.resolve(this.last);
    return new Promise((resolve, reject) => {
      const stop = (why: string): void => {
        settle();
        reject(new Error(why));
      };
      const interrupt = (): void => stop("interrupted");
      const timer = setTimeout(() => {
        stop(`no increment of an epoch above ${afterEpoch} was acknowledged in ${limitMs} ms; ${this.#state()}`);
      }, limitMs);
      const hear = (ack: Ack): void => {
        if (!isNext(ack)) return;
        settle();
        resolve(ack);
      };
      const settle = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(hear);
        this.#signal.removeEventListener("abort", interrupt);
      };
      this.#waiting.add(hear);
      this.#signal.addEventListener("abort", interrupt, { once: true });
    });
  }

  /** Tells all to end, and waits; whoever does not is killed, which is a finding. */
  async endAll(): Promise<void> {
    await Promise.all(this.members.map((member) => member.endGracefully(this.findings)));
    this.#members.clear();
  }

  /** At once, whatever they do. */
  killAll(): void {
    for (const member of this.#members.values()) member.kill();
  }

  #hear(member: Member, report: Report): void {
    if (report.is === "stale") {
      if (report.newest <= report.epoch) this.stale.early++;
      else this.countStale(report.outcome, `${member.name} in epoch ${report.epoch}`);
    }
    if (report.is === "trouble" && this.troubles.length < TROUBLES_MAX) {
      this.troubles.push(`${member.name}: ${report.message}`);
    }
    const acknowledged = this.ledger.note(member.name, report);
    if (acknowledged === undefined) return;
    this.acks++;
    const { epoch } = acknowledged;
    // An acknowledgement of a lost term may arrive late: it changes nothing about who leads.
    if (epoch < this.newestEpoch) return;
    this.acksInTerm = epoch === this.newestEpoch ? this.acksInTerm + 1 : 1;
    this.last = { worker: member.name, place: member.place, epoch, atMs: performance.now() };
    for (const hear of this.#waiting) hear(this.last);
  }

  /** An attempt that was sent when a newer epoch was known already. One that got no answer was none. */
  countStale(outcome: string, who: string): void {
    if (outcome === "unknown") return;
    this.stale.attempts++;
    if (outcome === "refused") this.stale.rejected++;
    else this.findings.push(`a stale write was accepted: ${who}, after a newer epoch was in force`);
  }

  #state(): string {
    const members = this.members.map((member) => `${member.name} ${member.state}`).join(", ");
    return `last ${JSON.stringify(this.last ?? null)}; ${members}; ${this.troubles.slice(-3).join("; ")}`;
  }
}

export class Member {
  readonly name: string;
  readonly place: number;
  readonly gone: Promise<void>;
  /** Its last transition, as it told. */
  transition = "starting";
  /** Why it must not have ended as it did. */
  crash: string | undefined;
  readonly #child: ChildProcess;
  #stderr = "";
  #isGone = false;
  #isStopped = false;
  #mayEnd = false;
  #spun: (() => void) | undefined;

  constructor(name: string, place: number, config: WorkerConfig, hear: (report: Report) => void) {
    this.name = name;
    this.place = place;
    this.#child = spawn(process.execPath, ["--no-warnings", WORKER], {
      env: { PATH: process.env["PATH"], [CONFIG_VARIABLE]: JSON.stringify(config) },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    running.add(this.#child);
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARS_MAX);
    });
    this.#child.on("message", (report: Report) => {
      if (report.is === "transition") this.transition = `${report.kind} ${report.epoch} ${report.reason}`.trim();
      if (report.is === "spun") this.#spun?.();
      hear(report);
    });
    // What it said before it ended is heard before this resolves.
    const heard = new Promise<void>((resolve) => {
      this.#child.once("disconnect", resolve);
      this.#child.once("error", () => resolve());
    });
    const ended = new Promise<void>((resolve) => {
      this.#child.once("error", (error) => {
        this.crash = `${name} could not be started: ${error.message}`;
        resolve();
      });
      this.#child.once("close", (code, signal) => {
        if (!this.#mayEnd) this.crash = `${name} ended by itself (${code ?? signal}): ${this.#stderr.trim()}`;
        resolve();
      });
    });
    this.gone = Promise.all([heard, ended]).then(() => {
      running.delete(this.#child);
      this.#isGone = true;
    });
  }

  get isAlive(): boolean {
    return !this.#isGone && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get state(): string {
    return this.isAlive ? `${this.#isStopped ? "stopped, " : ""}${this.transition}` : "gone";
  }

  kill(): void {
    this.#mayEnd = true;
    this.#child.kill("SIGKILL");
  }

  terminate(): void {
    this.#mayEnd = true;
    this.#child.kill("SIGTERM");
  }

  stop(): void {
    this.#isStopped = true;
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#isStopped = false;
    this.#child.kill("SIGCONT");
  }

  order(order: Order): void {
    if (this.isAlive) this.#child.send(order, () => undefined);
  }

  /** Blocks its event loop; resolves when it goes on. */
  spin(ms: number): Promise<void> {
    const spun = new Promise<void>((resolve) => {
      this.#spun = resolve;
    });
    this.order({ do: "spin", ms });
    return spun;
  }

  async endGracefully(findings: string[]): Promise<void> {
    if (this.isAlive) {
      if (this.#isStopped) this.resume();
      this.terminate();
    }
    try {
      await waitFor(`${this.name} to end`, () => this.#isGone, GRACE_MS);
    } catch {
      findings.push(`${this.name} did not end within ${GRACE_MS} ms of SIGTERM (${this.transition}): ${this.#stderr}`);
      this.kill();
      await this.gone;
    }
  }
}
