// The way from clients to the nodes and back: late, and sometimes lost. What a node says is judged where it leaves the node; whether it arrives
// is another matter. Clients reach every node that runs.

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { World } from "../kernel/index.ts";
import type { TxnServer } from "./island.ts";

const WAY_MS: readonly [number, number] = [0.2, 8];

export type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: TenureError };

export interface Letter<T> {
  readonly to: string;
  readonly ask: (server: TxnServer) => Promise<T>;
  /** In the node, as the answer leaves. */
  readonly judge?: ((node: string, answer: Answer<T>) => void) | undefined;
  readonly arrived: (answer: Answer<T>) => void;
}

/** A letter that is on its way, or at a node that works on it. */
export interface Underway {
  readonly to: string;
  /** Null: not there yet. */
  server: TxnServer | null;
}

export interface PostOffice {
  readonly world: World;
  readonly random: Random;
  readonly lossRate: number;
  readonly server: (node: string) => TxnServer | undefined;
  readonly underway: Set<Underway>;
}

export function post<T>(
  { world, random, lossRate, server: serverOf, underway }: PostOffice,
  { to, ask, judge, arrived }: Letter<T>,
): void {
  const owner = world.scheduler.owner("post");
  const onTheWay = (fire: (isLost: boolean) => void): void => {
    const isLost = random.chance(lossRate);
    world.scheduler.schedule(world.nowMs + random.between(...WAY_MS), owner, () => fire(isLost));
  };
  const letter: Underway = { to, server: null };
  underway.add(letter);
  onTheWay((isLost) => {
    letter.server = isLost ? null : (serverOf(to) ?? null);
    if (letter.server === null) {
      underway.delete(letter);
      return;
    }
    world.call(to, () => {
      const server = serverOf(to);
      if (server === undefined || server !== letter.server) {
        underway.delete(letter);
        return;
      }
      const settled = (answer: Answer<T>): void => {
        underway.delete(letter);
        if (serverOf(to) !== server) return;
        world.scheduler.trace(answer.ok ? "ok" : answer.error.code);
        judge?.(to, answer);
        onTheWay((isAnswerLost) => isAnswerLost || arrived(answer));
      };
      ask(server).then(
        (value) => settled({ ok: true, value }),
        (error: unknown) => {
          if (TenureError.is(error)) settled({ ok: false, error });
          // A process that has ended itself for a disk that failed fails all who wait for that disk.
          else if (serverOf(to) === server) world.report(to, error);
        },
      );
    });
  });
}
