// Follows one key: tells what it is now, then each change, without a gap.
//
//   read ──▶ watching ──compacted, or a poll knew more──▶ read
//               └──stopped, or a failure──▶ over
//
// Invariants: the watch starts at the revision after the read; what the watch and the polls say is told in the order
// of revisions, and nothing twice; a stream that went silent (half-open) costs one poll interval, never more, because
// the poll is the truth and a poll that is not answered is a failure.

import type { Clock, Timer } from "../../ports/clock.ts";
import type { KeyValue, WatchMessage } from "./answers.ts";
import type { EtcdSession } from "./session.ts";

/** A key at a revision; null where it does not exist. */
export interface KeyState {
  readonly kv: KeyValue | null;
  readonly revision: number;
}

export interface Followed {
  readonly session: EtcdSession;
  readonly clock: Clock;
  readonly key: string;
  /** What is known already; otherwise it is read. */
  readonly from?: KeyState | undefined;
  /** Null where somebody else reads the key all the time. */
  readonly pollMs: number | null;
  readonly signal: AbortSignal;
}

/** True: enough. */
export type Tell = (kv: KeyValue | null) => boolean;

export async function readKey(session: EtcdSession, key: string, signal: AbortSignal): Promise<KeyState> {
  const { kvs, revision } = await session.get(key, signal);
  return { kv: kvs[0] ?? null, revision };
}

/** Resolves when `tell` says so; rejects when the signal aborts or etcd can't be followed. The caller tries again. */
export async function follow(followed: Followed, tell: Tell): Promise<void> {
  const { session, key, signal } = followed;
  let state = followed.from ?? (await readKey(session, key, signal));
  if (tell(state.kv)) return;
  for (;;) {
    const round = new Round(followed, state, tell);
    const { enough, known } = await round.run();
    if (enough) return;
    const fresh = await readKey(session, key, signal);
    if (epochOf(fresh) !== epochOf(known) && tell(fresh.kv)) return;
    state = fresh;
  }
}

interface Outcome {
  readonly enough: boolean;
  /** What was told last. */
  readonly known: KeyState;
}

/** One stream, with the polls next to it. */
class Round {
  readonly #followed: Followed;
  readonly #tell: Tell;
  readonly #stop = new AbortController();
  readonly #outcome = Promise.withResolvers<Outcome>();
  #known: KeyState;
  #timer: Timer | undefined;

  constructor(followed: Followed, from: KeyState, tell: Tell) {
    this.#followed = followed;
    this.#known = from;
    this.#tell = tell;
  }

  async run(): Promise<Outcome> {
    const { session, key, signal } = this.#followed;
    const both = AbortSignal.any([signal, this.#stop.signal]);
    const onFailure = (error: unknown): void => this.#outcome.reject(error);
    session.watch(key, this.#known.revision + 1, both, (message) => this.#heard(message)).catch(onFailure);
    this.#armPoll(both);
    try {
      return await this.#outcome.promise;
    } finally {
      this.#timer?.cancel();
      this.#stop.abort();
    }
  }

  #heard(message: WatchMessage): void {
    for (const { kv, modRevision } of message.events) {
      if (modRevision > this.#known.revision && this.#learned({ kv, revision: modRevision })) return;
    }
    if (message.compacted) this.#finish(false);
  }

  #armPoll(signal: AbortSignal): void {
    const { clock, session, key, pollMs } = this.#followed;
    if (pollMs === null) return;
    this.#timer = clock.setTimer(clock.monotonicMs() + pollMs, () => {
      readKey(session, key, signal).then(
        (fresh) => {
          if (signal.aborted) return;
          const missed = fresh.revision > this.#known.revision && epochOf(fresh) !== epochOf(this.#known);
          if (!missed) this.#armPoll(signal);
          else if (!this.#learned(fresh)) this.#finish(false);
        },
        (error: unknown) => this.#outcome.reject(error),
      );
    });
  }

  /** True when that was enough. */
  #learned(state: KeyState): boolean {
    const changed = epochOf(state) !== epochOf(this.#known);
    this.#known = state;
    const enough = changed && this.#tell(state.kv);
    if (enough) this.#finish(true);
    return enough;
  }

  #finish(enough: boolean): void {
    this.#outcome.resolve({ enough, known: this.#known });
    this.#stop.abort();
  }
}

function epochOf({ kv }: KeyState): number {
  return kv?.createRevision ?? 0;
}
