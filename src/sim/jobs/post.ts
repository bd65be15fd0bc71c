// The way from clients and agents to the servers and back: late, and sometimes lost. What a server says is judged where it
// leaves the server; whether it arrives is another matter.

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Owner } from "../kernel/index.ts";
import type { JobsCluster, JobsServer } from "./cluster.ts";
import type { Asked } from "./oracle/oracle.ts";

const WAY_MS: readonly [number, number] = [0.2, 8];

export type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: TenureError };

export interface Letter<T> {
  readonly random: Random;
  /** The machine that it comes from; null: a client, who reaches everybody. */
  readonly from: string | null;
  readonly to: string;
  /** Another than the run's: how long it takes, and nothing of it is lost. */
  readonly wayMs?: readonly [number, number] | undefined;
  readonly ask: (server: JobsServer) => Promise<T>;
  /** In the server, as the answer leaves. */
  readonly judge: (asked: Asked, answer: Answer<T>, server: JobsServer) => void;
  /** In the server, in the turn in which it was asked. */
  readonly look?: ((server: JobsServer) => void) | undefined;
  readonly arrived: (answer: Answer<T>) => void;
}

export function post<T>(cluster: JobsCluster, letter: Letter<T>): void {
  const { world, oracle } = cluster;
  const { random, from, to } = letter;
  const owner = world.scheduler.owner(`post/${from ?? "clients"}`);
  const onTheWay = (there: string, back: string, fire: () => void): void => {
    const isLost = letter.wayMs === undefined && random.chance(cluster.knobs.lossRate);
    const lateMs = random.between(...(letter.wayMs ?? WAY_MS));
    world.scheduler.schedule(world.nowMs + lateMs, owner, () => {
      if (!isLost && (from === null || world.network.link(there, back).open)) fire();
    });
  };
  onTheWay(from ?? "", to, () => {
    world.call(to, () => {
      const server = cluster.server(to);
      if (server === undefined) return;
      const asked = oracle.asked(to);
      const settled = (answer: Answer<T>): void => {
        if (cluster.server(to) !== server) return;
        world.scheduler.trace(answer.ok ? "ok" : answer.error.code);
        letter.judge(asked, answer, server);
        onTheWay(to, from ?? "", () => letter.arrived(answer));
      };
      letter.ask(server).then(
        (value) => settled({ ok: true, value }),
        (error: unknown) => {
          if (TenureError.is(error)) settled({ ok: false, error });
          // A process that has ended itself for a disk that failed fails all who wait for that disk.
          else if (cluster.server(to) === server) world.report(to, error);
        },
      );
      letter.look?.(server);
    });
  });
}

/** A client's letter, mostly to whoever leads, and again until it is answered. */
export interface Insistence<T> {
  readonly owner: Owner;
  readonly random: (times: number) => Random;
  readonly againMs: readonly [number, number];
  readonly againMax: number;
  readonly letter: (to: string) => Pick<Letter<T>, "ask" | "judge" | "look">;
}

export function insist<T>(cluster: JobsCluster, how: Insistence<T>, times = 0): void {
  const random = how.random(times);
  const to = random.chance(0.8) ? (cluster.leader() ?? random.pick(cluster.names)) : random.pick(cluster.names);
  let isAnswered = false;
  post<T>(cluster, { random, from: null, to, ...how.letter(to), arrived: ({ ok }) => (isAnswered = ok) });
  cluster.later(how.owner, random.between(...how.againMs), () => {
    if (!isAnswered && times < how.againMax) insist(cluster, how, times + 1);
  });
}
