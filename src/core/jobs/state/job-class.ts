// What jobs have in common that decides where they may run: kind, queue, platform and labels are a class. Its ready jobs
// stand in lanes, one for each concurrency key and limit, so that a lane is open or closed as a whole and jobs that may not
// run now cost a lease nothing.
//
// Invariants:
// - `open` has exactly the lanes that are not empty and whose key has room, by their first job.
// - A lane's first job changes only while the lane is out of `open`.

import { Shards } from "../../kit/keyed/shards.ts";
import { Ranked } from "./ranked.ts";
import type { AgentInfo, JobSpec } from "../model.ts";
import type { Ticket } from "./records.ts";
import type { Slots } from "../shelf/slots.ts";

export type ClassSpec = Pick<JobSpec, "kind" | "queue" | "platform" | "labels">;

/** By name. */
type Labels = readonly (readonly [string, string])[];

export class Lane {
  readonly class: JobClass;
  readonly key: string | null;
  readonly limit: number;
  /** Of its jobs. */
  readonly slots: Ranked<number>;
  isOpen = false;

  constructor(of: JobClass, key: string | null, limit: number, { rank }: Slots) {
    this.class = of;
    this.key = key;
    this.limit = limit;
    this.slots = new Ranked<number>(rank);
  }
}

export class JobClass {
  readonly id: string;
  readonly kind: string;
  readonly queue: string;
  readonly platform: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly open: Ranked<Lane>;
  /** Jobs of it in the book, in whatever state. */
  jobs = 0;
  /** Those of them that are not finished. */
  live = 0;
  readonly #slots: Slots;
  readonly #labelled: Labels;
  /** Of jobs without a concurrency key. */
  readonly #plain: Lane;
  readonly #keyed = new Shards<Map<number, Lane>>();

  constructor(id: string, { kind, queue, platform }: ClassSpec, labels: Labels, slots: Slots) {
    this.id = id;
    this.kind = kind;
    this.queue = queue;
    this.platform = platform;
    this.#labelled = labels;
    this.labels = Object.fromEntries(labels);
    this.#slots = slots;
    this.#plain = new Lane(this, null, 0, slots);
    this.open = new Ranked<Lane>((one, other) => slots.rank(one.slots.first as number, other.slots.first as number));
  }

  laneOf({ concurrencyKey: key, concurrencyLimit: limit }: Ticket): Lane {
    if (key === null) return this.#plain;
    let lanes = this.#keyed.get(key);
    if (lanes === undefined) this.#keyed.set(key, (lanes = new Map<number, Lane>()));
    let lane = lanes.get(limit);
    if (lane === undefined) lanes.set(limit, (lane = new Lane(this, key, limit, this.#slots)));
    return lane;
  }

  /** It is empty: where many keys come and go, their lanes go with them. */
  drop({ key, limit }: Lane): void {
    if (key === null) return;
    const lanes = this.#keyed.get(key);
    lanes?.delete(limit);
    if (lanes?.size === 0) this.#keyed.delete(key);
  }

  /** Null: it may run there; otherwise the first thing that is missing, for people. */
  missingAt(agent: AgentInfo): string | null {
    if (!agent.kinds.includes(this.kind)) return `kind ${this.kind}`;
    if (this.platform !== null && this.platform !== agent.platform) return `platform ${this.platform}`;
    for (const [name, value] of this.#labelled) {
      if (!Object.hasOwn(agent.labels, name) || agent.labels[name] !== value) return `label ${name}=${value}`;
    }
    return null;
  }
}

/** All classes that have jobs, by what they are. */
export class JobClasses {
  readonly #slots: Slots;
  readonly #classes = new Map<string, JobClass>();
  #live = 0;

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  get size(): number {
    return this.#classes.size;
  }

  /** Those with jobs that are not finished: the others cost a lease nothing, and go with their jobs. */
  get live(): number {
    return this.#live;
  }

  /** The id of this job's class where no job that is not finished has it. */
  missing(spec: ClassSpec): string | null {
    const id = idOf(spec, labelsOf(spec));
    return (this.#classes.get(id)?.live ?? 0) > 0 ? null : id;
  }

  /** The one that jobs of this kind have, or one that becomes it with its first job. */
  of(spec: ClassSpec): JobClass {
    const labels = labelsOf(spec);
    const id = idOf(spec, labels);
    return this.#classes.get(id) ?? new JobClass(id, spec, labels, this.#slots);
  }

  join(one: JobClass): void {
    if (one.jobs++ === 0) this.#classes.set(one.id, one);
  }

  leave(one: JobClass): void {
    if (--one.jobs === 0) this.#classes.delete(one.id);
  }

  /** One of its jobs is live from now on, or no more. */
  count(one: JobClass, by: 1 | -1): void {
    one.live += by;
    if (one.live === (by === 1 ? 1 : 0)) this.#live += by;
  }
}

const NO_LABELS: Labels = [];

function labelsOf({ labels }: ClassSpec): Labels {
  const names = Object.keys(labels);
  if (names.length === 0) return NO_LABELS;
  return names.sort().map((name) => [name, labels[name] as string]);
}

/** Each part with its length before it: no two sets have the same text. */
function idOf({ kind, queue, platform }: ClassSpec, labels: Labels): string {
  let id = `${kind.length}:${kind}${queue.length}:${queue}`;
  if (platform !== null) id += `${platform.length}:${platform}`;
  for (const [name, value] of labels) id += `;${name.length}:${name}${value.length}:${value}`;
  return id;
}
