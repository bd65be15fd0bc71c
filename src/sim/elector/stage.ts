// Electors of production on the nodes of a simulated world, the server that they ask, their users, and the oracle.

import { nodeIdOf, peerKey, type PeerKey } from "../../core/kit/ids.ts";
import { type Boot, World } from "../kernel/index.ts";
import type { Disturbance } from "./instance-oracle.ts";
import { type Knobs, RATE_MIN } from "./knobs.ts";
import { decode } from "./messages.ts";
import { Oracle } from "./oracle.ts";
import { Post } from "./post.ts";
import type { ElectorRunOptions } from "./run.ts";
import { Durable, Server } from "./server.ts";
import { User } from "./user.ts";

export const SERVER = "server";
const SERVER_PEER = peerKey(SERVER, "1");

export interface StageOptions extends Pick<ElectorRunOptions, "narrate" | "reversed"> {
  readonly seed: string;
  readonly knobs: Knobs;
}

export class Stage {
  readonly world: World;
  readonly oracle: Oracle;
  readonly knobs: Knobs;
  readonly names: readonly string[];
  readonly #durable = new Durable();
  readonly #users = new Map<string, User>();
  #server: Server | undefined;
  readonly #awaited = new Map<string, { readonly what: "beat" | "ask"; readonly sent: () => void }>();
  #calm = false;

  constructor(options: StageOptions) {
    const { knobs } = options;
    this.knobs = knobs;
    this.names = Array.from({ length: knobs.instances }, (_, at) => `n${at + 1}`);
    const nodes = [SERVER, ...this.names];
    this.world = new World({
      seed: options.seed,
      nodes: options.reversed === true ? nodes.toReversed() : nodes,
      link: knobs.link,
      start: (boot) => this.#start(boot),
      classify: () => "finding",
      trace: options.narrate,
    });
    const { timing, drainMs } = knobs;
    const trustTrueMsMax = (timing.serverTimeoutMs - timing.marginMs) / RATE_MIN;
    this.oracle = new Oracle(
      () => this.world.nowMs,
      { timing, drainMs, trustTrueMsMax },
      (node, error) => this.world.report(node, error),
    );
    this.world.network.hooks.onSend = (from, _to, bytes) => this.#sent(nodeIdOf(from), bytes);
    for (const [at, name] of nodes.entries()) this.world.node(name).process.setClockRate(knobs.clockRates[at] ?? 1);
  }

  get server(): Server | undefined {
    return this.#server;
  }

  /** The node whose session holds the scope, as the server sees it. */
  get holder(): string | undefined {
    const identity = this.#server?.holder?.identity;
    return identity?.slice(0, identity.indexOf("/"));
  }

  get calm(): boolean {
    return this.#calm;
  }

  disturb(node: string, by: Disturbance): void {
    this.#users.get(node)?.disturbed(by);
  }

  calmDown(): void {
    this.#calm = true;
    this.world.calm();
  }

  /** Its disk is as it was so many grants ago, when nobody held the scope. While it does not run. */
  restoreServer(grants: number): boolean {
    const durable = this.#durable;
    if (durable.epoch === 0) return false;
    if (durable.hold !== null) this.oracle.holdEnded(durable.hold.epoch, "restarted");
    durable.hold = null;
    durable.epoch = Math.max(0, durable.epoch - grants);
    this.oracle.restored(durable.epoch);
    return true;
  }

  /** Once, when this node sends its next such request. */
  onSending(node: string, what: "beat" | "ask", sent: () => void): void {
    this.#awaited.set(node, { what, sent });
  }

  /** In what the instances do not agree, or null. */
  disagreement(): string | null {
    const leader = this.#server?.holder ?? null;
    if (leader === null) return "nobody holds the scope";
    for (const name of this.names) {
      const user = this.#users.get(name);
      if (user === undefined || !user.settled) return `${name} is not settled: ${user?.doing ?? "it does not run"}`;
      if (user.observed !== leader.epoch) return `${name} has observed epoch ${user.observed}, not ${leader.epoch}`;
      if (user.leads !== (leader.identity === user.identity))
        return `${name} ${user.leads ? "leads" : "does not lead"}`;
    }
    return null;
  }

  #start(boot: Boot): void {
    if (boot.node === SERVER) return this.#startServer(boot);
    const { knobs } = this;
    const wire = boot.wire(peerOf(boot));
    const post = new Post({
      flavour: knobs.flavour,
      clock: boot.clock,
      wire,
      server: SERVER_PEER,
      patienceMs: knobs.patienceMs,
    });
    post.start();
    const user = new User({
      boot,
      knobs,
      post,
      oracle: this.oracle,
      isCalm: () => this.#calm,
      tell: (text) => this.#tell(boot, text),
    });
    this.#users.set(boot.node, user);
    user.live().catch((error: unknown) => boot.fatal(error));
  }

  #startServer(boot: Boot): void {
    const { flavour, timing } = this.knobs;
    this.#server = new Server({
      flavour,
      timeoutMs: timing.serverTimeoutMs,
      clock: boot.clock,
      wire: boot.wire(SERVER_PEER),
      durable: this.#durable,
      events: {
        granted: (epoch, session) => {
          this.#tell(boot, `grants epoch ${epoch} to ${session}`);
          this.oracle.granted(epoch);
        },
        holdEnded: (epoch, how) => {
          this.#tell(boot, `epoch ${epoch} ends: ${how}`);
          this.oracle.holdEnded(epoch, how);
        },
        written: (epoch, accepted) => this.oracle.written(epoch, accepted),
      },
    });
    this.#server.start();
  }

  #sent(node: string, bytes: Uint8Array): void {
    const awaited = this.#awaited.get(node);
    if (awaited === undefined) return;
    const frame = decode(bytes);
    if (!("body" in frame) || frame.body.kind !== awaited.what) return;
    this.#awaited.delete(node);
    awaited.sent();
  }

  #tell(boot: Boot, text: string): void {
    this.world.scheduler.trace(boot.node, text);
    this.world.scheduler.narrate(boot.node, () => text);
  }
}

function peerOf(boot: Boot): PeerKey {
  return peerKey(boot.node, boot.life.toString(16));
}
