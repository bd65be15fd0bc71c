// The network of a golden transcript: messages wait in it in the order in which they were sent, until a
// command hands them over or loses them.

import { nodeIdOf } from "../../src/core/kit/ids.ts";
import type { Message } from "../../src/core/raft/index.ts";
import type { Command } from "./script.ts";

export class Network {
  #waiting: Message[] = [];
  /** "n3" is separated from all others; "n1-n2" stops what n1 sends to n2. */
  #cuts = new Set<string>();

  /** What is sent over a cut link is lost. */
  send(message: Message): void {
    if (!this.isCut(message)) this.#waiting.push(message);
  }

  /** Everything that waits for these nodes. */
  take(nodeIds: readonly string[]): readonly Message[] {
    const taken = this.#waiting.filter((message) => nodeIds.includes(nodeIdOf(message.to)));
    this.#waiting = this.#waiting.filter((message) => !nodeIds.includes(nodeIdOf(message.to)));
    return taken;
  }

  /** What waits for these nodes, narrowed by type=, from=, skip=, count=; and what waits for those of drop=. */
  select(
    nodeIds: readonly string[],
    options: Command["options"],
  ): readonly { readonly message: Message; readonly isDropped: boolean }[] {
    const drop = options.get("drop") ?? [];
    const types = options.get("type");
    const from = options.get("from");
    let skip = Number(options.get("skip")?.[0] ?? 0);
    let left = Number(options.get("count")?.[0] ?? Infinity);
    const selected: { readonly message: Message; readonly isDropped: boolean }[] = [];
    this.#waiting = this.#waiting.filter((message) => {
      const to = nodeIdOf(message.to);
      const fits = (types?.includes(message.type) ?? true) && (from?.includes(nodeIdOf(message.from)) ?? true);
      const isDropped = drop.includes(to);
      if (!fits || (!isDropped && !nodeIds.includes(to))) return true;
      if (!isDropped && (left === 0 || skip-- > 0)) return true;
      if (!isDropped) left--;
      selected.push({ message, isDropped });
      return false;
    });
    return selected;
  }

  duplicate(nodeIds: readonly string[]): void {
    this.#waiting.push(...this.#waiting.filter((message) => nodeIds.includes(nodeIdOf(message.to))));
  }

  cut(links: readonly string[]): void {
    for (const link of links) this.#cuts.add(link);
  }

  /** All cuts, or the named ones. */
  heal(links: readonly string[]): void {
    if (links.length === 0) this.#cuts.clear();
    for (const link of links) this.#cuts.delete(link);
  }

  isCut(message: Message): boolean {
    const from = nodeIdOf(message.from);
    const to = nodeIdOf(message.to);
    return this.#cuts.has(from) || this.#cuts.has(to) || this.#cuts.has(`${from}-${to}`);
  }
}
