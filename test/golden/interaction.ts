// The stage of the golden transcripts: nodes, a network that delivers only what it is told to, and a clock
// that moves only when it is told to. What the commands are is listed in README.md next to this file.
// Two things are checked at every step, whatever a transcript expects: a term has one leader, and what
// two nodes apply at one index is the same.

import { nodeIdOf, parsePeerKey, peerKey, type PeerKey } from "../../src/core/kit/ids.ts";
import { type Input, type Message, members, type Ready, type StepResult } from "../../src/core/raft/index.ts";
import { Host } from "./host.ts";
import { Network } from "./network.ts";
import { forgedMessage, hostOptions } from "./setup.ts";
import {
  configurationText,
  entriesText,
  entryText,
  eventText,
  messageText,
  nameOf,
  persistText,
  progressText,
  statusText,
} from "./print.ts";
import { type Command, parseCommand } from "./script.ts";

const ROUNDS_MAX = 200;
/** Instants at which something is due within one `run`: a node that is due again and again at one instant must not hang the test. */
const INSTANTS_MAX = 10_000;

export class Interaction {
  readonly #hosts = new Map<string, Host>();
  readonly #network = new Network();
  #nowMs = 0;
  #lines: string[] = [];
  /** During `run` only events are told. */
  #eventsOnly = false;
  readonly #leaderOfTerm = new Map<number, PeerKey>();
  readonly #appliedAt = new Map<number, string>();

  /** Runs the commands of one block and returns what they print. `where` names the block in an error. */
  run(lines: readonly string[], where: string): string {
    const printed: string[] = [];
    for (const line of lines) {
      const command = parseCommand(line);
      this.#lines = [];
      try {
        this.#execute(command);
      } catch (error) {
        throw new Error(`${where}: ${line}: ${String(error)}`, { cause: error });
      }
      if (!command.quiet) printed.push(...this.#lines);
    }
    return printed.length === 0 ? "ok" : printed.join("\n");
  }

  #execute(command: Command): void {
    if (this.#executeOnStage(command)) return;
    const [first = "", second = ""] = command.words;
    const host = this.#host(first);
    const stepping = this.#inputOf(command, second);
    if (stepping !== null) return this.#answer(host.step(this.#nowMs, stepping));
    switch (command.name) {
      case "ready":
        return this.#ready(host);
      case "persist":
        return this.#persist(host, command.words[1] === undefined ? Infinity : Number(second));
      case "apply":
        return this.#apply(host);
      case "crash":
        return host.crash();
      case "restart":
        return host.start(this.#nowMs);
      case "wipe":
        return this.#wipe(host);
      case "introduce":
        return this.#introduce(host, command.words.slice(1));
      case "timeout":
        host.timeoutMs = milliseconds(second);
        return;
      case "hang":
        host.diskHangs = !command.words.includes("off");
        return;
      case "refusals":
        return this.#refusals(host);
      case "compact":
        return this.#answer(host.compact(this.#nowMs, Number(second), Number(command.words[2] ?? 0)));
      case "progress":
        return this.#progress(host);
      default:
        throw new Error(`there is no command ${command.name}`);
    }
  }

  /** Commands about no single node. */
  #executeOnStage(command: Command): boolean {
    const { name, words, options } = command;
    switch (name) {
      case "add-nodes":
        for (let count = Number(words[0]); count > 0; count--) this.#start(`n${this.#hosts.size + 1}`, options);
        return true;
      case "start":
        this.#start(words[0] ?? "", options);
        return true;
      case "stabilize":
        this.#stabilize(this.#named(words));
        return true;
      case "deliver":
        this.#deliver(words, options);
        return true;
      case "advance":
        this.#advance(milliseconds(words[0] ?? ""), this.#named(words.slice(1)));
        return true;
      case "run":
        this.#run(milliseconds(words[0] ?? ""), this.#named(words.slice(1)));
        return true;
      case "duplicate":
        this.#network.duplicate(words);
        return true;
      case "cut":
        this.#network.cut(words);
        return true;
      case "heal":
        this.#network.heal(words);
        return true;
      case "inject":
        this.#inject(command);
        return true;
      case "status":
        for (const host of this.#named(words))
          this.#print(host.isUp ? statusText(host.running.status()) : `${host.nodeId} is down`);
        return true;
      case "configuration":
        for (const host of this.#named(words)) {
          this.#print(`${nameOf(host.peer)} ${configurationText(host.running.status().configuration)}`);
        }
        return true;
      case "log":
        for (const host of this.#named(words)) this.#log(host);
        return true;
      default:
        return false;
    }
  }

  /** Commands that are one input to one node. */
  #inputOf({ name, words, options }: Command, second: string): Input | null {
    switch (name) {
      case "campaign":
        return { kind: "campaign" };
      case "propose":
        return { kind: "propose", data: words.slice(1).map((word) => new TextEncoder().encode(word)) };
      case "propose-conf-change":
        return { kind: "conf-change", change: { operations: this.#operations(words.slice(1)) } };
      case "replace":
        return { kind: "replace", nodeId: second };
      case "read":
        return { kind: "read-index", context: Number(second) };
      case "transfer": {
        const target = words[1] === undefined || second === "force" ? null : this.#peer(second);
        return { kind: "transfer", target, force: words.includes("force") || options.has("force") };
      }
      case "peer-gone":
      case "unreachable":
      case "snapshot-failed":
      case "peer-seen":
        return { kind: name, peer: this.#peer(second) };
      default:
        return null;
    }
  }

  #operations(words: readonly string[]): { op: "add-voter" | "add-learner" | "remove"; peer: PeerKey }[] {
    const operations = [];
    for (let at = 0; at < words.length; at += 2) {
      const op = words[at];
      if (op !== "add-voter" && op !== "add-learner" && op !== "remove")
        throw new Error(`no operation is called ${op}`);
      operations.push({ op, peer: this.#peer(words[at + 1] ?? "") } as const);
    }
    return operations;
  }

  // ---- nodes ---------------------------------------------------------------------------------------

  #start(nodeId: string, options: Command["options"]): void {
    this.#hosts.set(nodeId, new Host(hostOptions(nodeId, options), this.#nowMs));
    this.#firstReady(nodeId);
  }

  /** What a node says before it was asked anything is its configuration and its applied log: of no interest. */
  #firstReady(nodeId: string): void {
    const host = this.#host(nodeId);
    host.takeReady();
    this.#applyAll(host);
  }

  #wipe(host: Host): void {
    const incarnation = Number(host.peer.slice(host.peer.indexOf("@") + 1)) + 1;
    const disk = { hardState: { term: 0, vote: null, commit: 0 }, snapshot: null, entries: [] };
    const options = { ...host.options, peer: peerKey(host.nodeId, String(incarnation)), disk };
    this.#hosts.set(host.nodeId, new Host(options, this.#nowMs));
    this.#print(`${host.nodeId} starts with an empty disk as ${options.peer}`);
  }

  /** The handshake of the wire: both sides see who the other one is. */
  #introduce(host: Host, words: readonly string[]): void {
    for (const other of this.#named(words)) {
      if (other === host || !other.isUp) continue;
      host.step(this.#nowMs, { kind: "peer-seen", peer: other.peer });
      other.step(this.#nowMs, { kind: "peer-seen", peer: host.peer });
    }
  }

  #host(name: string): Host {
    const host = this.#hosts.get(name);
    if (host === undefined) throw new Error(`there is no node ${JSON.stringify(name)}`);
    return host;
  }

  #named(words: readonly string[]): Host[] {
    return words.length === 0 ? [...this.#hosts.values()] : words.map((word) => this.#host(word));
  }

  #peer(word: string): PeerKey {
    return parsePeerKey(word) ?? this.#hosts.get(word)?.peer ?? peerKey(word, "1");
  }

  // ---- what nodes hand out --------------------------------------------------------------------------

  #ready(host: Host): void {
    const ready = host.takeReady();
    const name = nameOf(host.peer);
    for (const event of ready.events) {
      if (event.kind === "role" && event.role === "leader") this.#checkLeader(event.term, host.peer);
      this.#print(`${name} ${eventText(event)}`, true);
    }
    for (const { context, index } of ready.readStates) {
      this.#print(
        index === 0 ? `${name} read ${context} is refused` : `${name} read ${context} may be served at ${index}`,
        true,
      );
    }
    if (ready.committed.length > 0) this.#print(`${name} commits ${entriesText(ready.committed)}`);
    this.#checkCommitted(ready);
    if (ready.persist !== null) this.#print(`${name} ${persistText(ready.persist)}`);
    this.#send(ready.messages);
  }

  #persist(host: Host, countMax: number): void {
    for (let count = 0; count < countMax && host.canWrite; count++) this.#send(host.completeWrite(this.#nowMs));
  }

  #apply(host: Host): void {
    if (this.#applyAll(host) === 0) this.#print(`${host.nodeId} has nothing to apply`);
  }

  #applyAll(host: Host): number {
    const { applying } = host;
    host.applying = [];
    if (applying.length > 0) host.step(this.#nowMs, { kind: "applied", index: applying.at(-1)!.index });
    return applying.length;
  }

  #send(messages: readonly Message[]): void {
    for (const message of messages) {
      this.#print(messageText(message));
      const isDown = this.#hosts.get(nodeIdOf(message.to))?.isUp === false;
      if (!isDown) this.#network.send(message);
    }
  }

  #answer(result: StepResult): void {
    if (!result.ok) this.#print(`refused ${result.code}: ${result.message}`);
  }

  // ---- the network ----------------------------------------------------------------------------------

  #deliver(words: readonly string[], options: Command["options"]): void {
    for (const { message, isDropped } of this.#network.select(words, options)) {
      this.#print(`${isDropped ? "dropped" : "delivered"}: ${messageText(message)}`);
      if (!isDropped) this.#receive(message);
    }
  }

  #receive(message: Message): void {
    const host = this.#hosts.get(nodeIdOf(message.to));
    if (host === undefined || !host.isUp || host.peer !== message.to || this.#network.isCut(message)) return;
    this.#answer(host.step(this.#nowMs, { kind: "message", message }));
  }

  #inject(command: Command): void {
    const message = forgedMessage(command, (word) => this.#peer(word));
    this.#print(messageText(message));
    const host = this.#host(command.options.get("at")?.[0] ?? nodeIdOf(message.to));
    const before = statusText(host.running.status());
    this.#answer(host.step(this.#nowMs, { kind: "message", message }));
    const after = statusText(host.running.status());
    if (after === before) this.#print(`${host.nodeId} is as it was`);
    else this.#print(after);
  }

  /** Everything that can happen without time passing, in rounds: deliver, Ready, disk, apply. */
  #stabilize(hosts: readonly Host[]): void {
    const names = hosts.map((host) => host.nodeId);
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const waiting = this.#network.take(names);
      for (const message of waiting) this.#receive(message);
      const alive = hosts.filter((host) => host.isUp);
      const busy = alive.filter((host) => host.stepped || host.canWrite || host.applying.length > 0);
      if (waiting.length === 0 && busy.length === 0) return;
      for (const host of alive) if (host.stepped) this.#ready(host);
      for (const host of alive) this.#persist(host, Infinity);
      for (const host of alive) this.#applyAll(host);
    }
    throw new Error(`no rest after ${ROUNDS_MAX} rounds`);
  }

  // ---- time -----------------------------------------------------------------------------------------

  /** Time passes for these nodes; what is due is done and printed, nothing is delivered. */
  #advance(durationMs: number, hosts: readonly Host[]): void {
    this.#pass(durationMs, hosts, () => {
      for (const host of hosts) if (host.isUp && host.stepped) this.#ready(host);
    });
  }

  /** Time passes on a network and disks without delay; only events are printed. */
  #run(durationMs: number, hosts: readonly Host[]): void {
    this.#eventsOnly = true;
    this.#pass(durationMs, hosts, () => this.#stabilize(hosts));
    this.#eventsOnly = false;
  }

  #pass(durationMs: number, hosts: readonly Host[], settle: () => void): void {
    const endMs = this.#nowMs + durationMs;
    for (let instant = 0; ; instant++) {
      if (instant > INSTANTS_MAX) throw new Error(`at ${this.#nowMs}ms something is due for ever`);
      this.#atThisTime(settle);
      const nextMs = Math.min(...hosts.map((host) => host.deadlineMs));
      if (nextMs > endMs) break;
      this.#nowMs = Math.max(this.#nowMs, nextMs);
      for (const host of hosts)
        if (host.isUp && host.deadlineMs <= this.#nowMs) host.step(this.#nowMs, { kind: "time" });
    }
    this.#nowMs = endMs;
  }

  /** The time stands above what happened at it, where something did. */
  #atThisTime(action: () => void): void {
    const at = this.#lines.length;
    action();
    if (this.#lines.length > at) this.#lines.splice(at, 0, `@${this.#nowMs}ms`);
  }

  // ---- looking in, and the checks that no transcript can switch off -----------------------------------

  #log(host: Host): void {
    const { firstIndex, lastIndex } = host.running.status();
    const below = `${host.running.termAt(firstIndex - 1)}/${firstIndex - 1}`;
    const entries: string[] = [];
    for (let index = firstIndex; index <= lastIndex; index++) entries.push(entryText(host.running.entryAt(index)!));
    this.#print(`${nameOf(host.peer)} ${below} | ${entries.join(", ")}`);
  }

  #progress(host: Host): void {
    for (const peer of members(host.running.status().configuration)) {
      const progress = host.running.progressOf(peer);
      if (progress !== undefined && peer !== host.peer) this.#print(progressText(peer, progress));
    }
  }

  #refusals(host: Host): void {
    const counts = Object.entries(host.running.refusals).filter(([, count]) => count > 0);
    this.#print(`${nameOf(host.peer)} has refused ${counts.map(([reason, count]) => `${reason}:${count}`).join(" ")}`);
  }

  #checkLeader(term: number, peer: PeerKey): void {
    const known = this.#leaderOfTerm.get(term);
    if (known !== undefined && known !== peer) throw new Error(`term ${term} has two leaders: ${known} and ${peer}`);
    this.#leaderOfTerm.set(term, peer);
  }

  #checkCommitted(ready: Ready): void {
    for (const entry of ready.committed) {
      const text = entryText(entry);
      const known = this.#appliedAt.get(entry.index);
      if (known !== undefined && known !== text)
        throw new Error(`two entries are committed at ${entry.index}: ${known} and ${text}`);
      this.#appliedAt.set(entry.index, text);
    }
  }

  #print(line: string, isEvent = false): void {
    if (!this.#eventsOnly || isEvent) this.#lines.push(line);
  }
}

function milliseconds(word: string): number {
  const match = /^(\d+(?:\.\d+)?)ms$/.exec(word);
  if (match === null) throw new Error(`${JSON.stringify(word)} is not a time such as 50ms`);
  return Number(match[1]);
}
