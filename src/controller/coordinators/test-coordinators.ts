// What the tests of a coordinator's service share: nodes with disks in memory, whose calls reach each other at once, and one clock that the test moves.

import { nodeIdOf } from "../../core/kit/ids.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { HandClock } from "../../loops/test-clock.ts";
import type { Answered, CoordinatorRequest } from "../../ports/coordinators.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Disk } from "../../ports/disk.ts";
import type { LogFields } from "../../ports/logger.ts";
import { openCoordinatorFiles } from "./files.ts";
import { CoordinatorService } from "./service.ts";

interface NodeOptions<D> {
  readonly endpoint?: string;
  readonly seeds?: readonly string[];
  readonly disk?: D;
  readonly log?: string;
  readonly backendHash?: string;
}

interface TestNode<D> {
  readonly service: CoordinatorService;
  readonly disk: D;
  readonly endpoint: string;
  /** Terms for which its work runs. */
  readonly terms: number[];
  /** Events of its log. */
  readonly logged: string[];
}

/** What their disks and checksums are. */
interface TestMachines<D extends Disk> {
  readonly digest: Digest;
  newDisk(): D;
}

export class TestCoordinators<D extends Disk> {
  readonly clock = new HandClock();
  readonly nodes = new Map<string, TestNode<D>>();
  /** Node ids that nobody reaches, and that reach nobody. */
  readonly cut = new Set<string>();
  /** Nodes that nobody wants to lead. */
  readonly #unwanted = new Set<string>();
  readonly errors: unknown[] = [];
  readonly #machines: TestMachines<D>;
  #starts = 0;

  constructor(machines: TestMachines<D>) {
    this.#machines = machines;
  }

  /** Each with its name as endpoint; they know each other. */
  async startAll(...names: readonly string[]): Promise<void> {
    for (const name of names) await this.start(name, { seeds: names });
  }

  async start(name: string, options: NodeOptions<D> = {}): Promise<TestNode<D>> {
    const { digest } = this.#machines;
    const { endpoint = name, seeds = [endpoint], disk = this.#machines.newDisk(), log = "e1" } = options;
    const newIncarnation = (): string => (++this.#starts).toString(16);
    const files = await openCoordinatorFiles({ disk, digest, node: name, log, newIncarnation });
    const terms: number[] = [];
    const logged: string[] = [];
    const write = (fields: LogFields): void => void logged.push(String(fields["event"]));
    const service = new CoordinatorService({
      files,
      endpoint,
      seeds,
      backendHash: options.backendHash ?? `island-${name}`,
      calls: { call: (to, request) => this.#call(name, to, request) as Promise<never> },
      clock: this.clock,
      random: seededRandom(`${name}/${this.#starts}`),
      logger: { info: write, warn: write, error: write },
      work: {
        begins: (term) => void terms.push(term),
        ends: async (term) => void terms.splice(terms.indexOf(term), 1),
      },
      isWanted: () => !this.#unwanted.has(name),
      newClusterId: () => `cluster-of-${name}`,
      fatal: (error) => void this.errors.push(error),
    });
    const node = { service, disk, endpoint, terms, logged };
    this.nodes.set(name, node);
    service.start();
    return node;
  }

  /** As a kill would: nothing is said to anybody, and what was not synced is still there. Returns its disk. */
  kill(name: string): D {
    const { service, disk } = this.node(name);
    this.nodes.delete(name);
    void service.coordinator.stop();
    return disk;
  }

  node(name: string): TestNode<D> {
    const node = this.nodes.get(name);
    if (node === undefined) throw new Error(`${name} does not run`);
    return node;
  }

  service(name: string): CoordinatorService {
    return this.node(name).service;
  }

  want(name: string, isWanted: boolean): void {
    if (isWanted) this.#unwanted.delete(name);
    else this.#unwanted.add(name);
    this.service(name).coordinator.wake();
  }

  /** Whoever acts now. */
  get leaders(): readonly string[] {
    return [...this.nodes].filter(([, { service }]) => service.view().actsInTerm !== null).map(([name]) => name);
  }

  /** False: it has not become true within the time. */
  async until(isTrue: () => boolean, withinMs = 60_000): Promise<boolean> {
    const untilMs = this.clock.nowMs + withinMs;
    while (!isTrue() && this.clock.nowMs < untilMs) await this.clock.advance(50);
    return isTrue();
  }

  /** All that run are voters, one leads, and all are registered where they are. */
  async settle(): Promise<void> {
    const isSettled = await this.until(() => this.disagreement() === null, 120_000);
    if (!isSettled) throw new Error(this.disagreement() ?? "");
  }

  disagreement(): string | null {
    const [leader] = this.leaders;
    if (leader === undefined || this.leaders.length > 1) return `${this.leaders.length} lead`;
    const { voters } = this.service(leader).members();
    const all = [...this.nodes.values()].map(({ service, endpoint }) => `${service.self} ${endpoint}`).sort();
    const known = voters.map(({ peer, endpoint }) => `${peer} ${endpoint}`).sort();
    if (known.join() !== all.join()) return `the voters are ${known.join()}, and not ${all.join()}`;
    for (const [name, { service }] of this.nodes) {
      const { entries } = service.registry();
      for (const other of this.nodes.values())
        if (!entries.some(({ endpoint }) => endpoint === other.endpoint))
          return `${name} does not show ${other.endpoint}`;
    }
    return null;
  }

  async #call(
    from: string,
    endpoint: string,
    request: CoordinatorRequest,
  ): Promise<Answered<CoordinatorRequest> | null> {
    const target = [...this.nodes].find(([, node]) => node.endpoint === endpoint);
    if (target === undefined || this.cut.has(from) || this.cut.has(target[0])) return null;
    const { service } = target[1];
    // As an API does: whoever left says no word of itself.
    if (request.kind === "status" && service.view().hasLeft) return null;
    const answer = await service.answer(from, structuredClone(request));
    return { from: nodeIdOf(service.self), answer: structuredClone(answer) };
  }
}
