// Our runs in the words of etcd's state trace (etcd-io/raft state_trace.go), one JSON object a line, so that
// etcd's own TLA+ specification (tla/Traceetcdraft.tla) can follow them. docs/etcd-trace.md says how, and how far.
//
// The specification knows less than our core: no pre-vote, no stickiness, no fast detection, and one disk write
// that is done when it begins. So this file keeps, for every peer, what the specification holds of it (its
// Shadow), and tells each event as the specification can understand it:
// - what it can't know is told as something it knows: a message that was ignored, or that only pre-votes explain,
//   was lost; a term that came with such a message is told with the next message of that term, or as further
//   timeouts; a candidate that gave up steps down; a message that came twice was sent twice;
// - what etcd sends to itself (its own vote, its own append) is told when our core counts it.
// Lines are kept until `finish`, because two questions are answered late: how often a message arrives, and which
// write a crash took back.

import type { PeerKey } from "../core/kit/ids.ts";
import type {
  ConfChange,
  Configuration,
  Message,
  Raft,
  RaftOptions,
  RaftStatus,
  TraceName,
} from "../core/raft/index.ts";
import {
  messageToSelf,
  Names,
  roleOf,
  same,
  sameLog,
  type Durable,
  type Role,
  type TracingEvent,
  type TracingMessage,
} from "./etcd-trace-shape.ts";

interface Line {
  readonly event: TracingEvent;
  /** 0: taken back. */
  copies: number;
}

/** What leaves with one Ready, and what that Ready makes durable in the specification. */
interface Batch {
  ready: Line | null;
  /** Somebody has received one of its messages: it can't be taken back. */
  received: boolean;
  /** Our own state when it was handed out, and what the specification was notified of it. */
  handed: Durable | null;
  told: Durable | null;
}

/** A peer as the specification sees it after the last line. */
interface Shadow {
  readonly id: string;
  raft: Raft;
  role: Role;
  term: number;
  vote: string;
  commit: number;
  log: number;
  configuration: Configuration;
  /** Something was told since the last Ready. */
  dirty: boolean;
  batch: Batch;
  readonly batches: Batch[];
  /** Own appends that are not counted yet, by their last index. */
  ownAppends: number[];
  /** The event of the last line, while it is a Receive. */
  received: TracingEvent | null;
  /** The message that is being answered was told; the answer may be told, too. */
  answering: boolean;
}

/** A message that the specification holds: how many copies may still arrive. */
interface Sent {
  readonly line: Line;
  readonly batch: Batch;
  left: number;
}

export type EtcdTracer = NonNullable<RaftOptions["trace"]> & {
  /** Call it after the run: only now are the lines written. */
  readonly finish: () => void;
};

const REQUESTS: ReadonlySet<string> = new Set(["MsgApp", "MsgHeartbeat", "MsgSnap", "MsgVote"]);
/** `validate.sh` sorts lines by their timestamp as text: it must have the same width on all of them. */
const FIRST_TIMESTAMP = 1_000_000_000;

/** `write` is given one line at a time, without its end. */
export function etcdTracer(write: (line: string) => void): EtcdTracer {
  const story = new Story();
  const trace: NonNullable<RaftOptions["trace"]> = (raft, name, message, change) =>
    story.event(raft, name, message, change);
  const finish = (): void => {
    let ts = FIRST_TIMESTAMP;
    for (const { event, copies } of story.lines) {
      for (let copy = 0; copy < copies; copy++)
        write(JSON.stringify({ level: "debug", ts: ts++, msg: "trace", tag: "trace", event }));
    }
  };
  return Object.assign(trace, { finish });
}

class Story {
  readonly lines: Line[] = [];
  readonly #names = new Names();
  readonly #shadows = new Map<PeerKey, Shadow>();
  readonly #sent = new Map<string, Sent>();
  /** A request for votes with a higher term: it counts only if the node follows it into that term. */
  #held: { readonly shadow: Shadow; readonly name: TraceName; readonly message: Message } | null = null;

  event(raft: Raft, name: TraceName, message: Message | null, change: ConfChange | null): void {
    const held = this.#held;
    this.#held = null;
    const shadow = this.#shadows.get(raft.peer);
    if (name === "InitState") return this.#init(raft, shadow);
    // A node that recovers commits before it says that it is there.
    if (shadow?.raft !== raft) return;
    if (held !== null && held.shadow === shadow && name === "BecomeFollower")
      this.#receive(shadow, held.name, held.message);
    const status = raft.status();
    if (name.startsWith("Receive")) return this.#beginReceive(shadow, status, name, message!);
    if (name.startsWith("Send")) return this.#send(shadow, status, name, message!);
    this.#transition(shadow, status, name, change);
  }

  #transition(shadow: Shadow, status: RaftStatus, name: TraceName, change: ConfChange | null): void {
    switch (name) {
      case "BecomeFollower":
        return this.#becomeFollower(shadow, status);
      case "BecomeCandidate":
        return this.#becomeCandidate(shadow, status);
      case "BecomeLeader":
        return this.#becomeLeader(shadow, status);
      case "Replicate":
        this.#line(shadow, name);
        return this.#appended(shadow, status.lastIndex);
      case "ChangeConf":
        return this.#changeConf(shadow, status, change!);
      case "ApplyConfChange":
        this.#keepUp(shadow, status, { configuration: false });
        return this.#applyConf(shadow, status.configuration);
      case "Commit":
        // A follower's commit is part of the message that told it.
        if (shadow.role === "StateLeader") this.#commit(shadow, status);
        return;
      default:
        return this.#ready(shadow, status);
    }
  }

  // ---- lives -----------------------------------------------------------------------------------------

  #init(raft: Raft, before: Shadow | undefined): void {
    const status = raft.status();
    const { configuration } = status;
    // Founders get the small numbers, in the order of their names.
    this.#names.conf(configuration);
    const id = this.#names.of(raft.peer);
    const recovered = this.#durable(status);
    const told = before === undefined ? recovered : this.#takeBack(before, recovered);
    const batch = newBatch();
    const shadow: Shadow = {
      id,
      raft,
      configuration,
      batch,
      batches: before?.batches ?? [],
      role: "StateFollower",
      term: told.term,
      vote: told.vote,
      commit: status.commit,
      log: status.lastIndex,
      dirty: false,
      ownAppends: [],
      received: null,
      answering: false,
    };
    shadow.batches.push(batch);
    this.#shadows.set(raft.peer, shadow);
    this.#line(shadow, "InitState");
    if (before === undefined) this.#line(shadow, "BecomeFollower");
    shadow.dirty = false;
  }

  /** A crash took back the writes that were under way: the specification must not believe that they were done. */
  #takeBack(before: Shadow, recovered: Durable): Durable {
    const { batches } = before;
    const last = batches.findLastIndex(({ handed }) => handed !== null && same(handed, recovered));
    const first =
      last < 0 ? batches.findLastIndex(({ handed }) => handed !== null && sameLog(handed, recovered)) : last;
    for (let at = batches.length - 1; at > Math.max(first, -1); at--) {
      const batch = batches[at]!;
      if (batch.received) break;
      if (batch.ready !== null) batch.ready.copies = 0;
    }
    // A term that the specification had not learned before the crash is still unknown to it.
    const kept = batches.findLast(({ ready }) => ready !== null && ready.copies > 0);
    const told = kept?.told ?? recovered;
    return told.term < recovered.term && kept?.handed?.term === recovered.term ? told : recovered;
  }

  #durable({ term, vote, lastIndex: log, commit }: RaftStatus): Durable {
    return { term, vote: this.#names.orNone(vote), log, commit };
  }

  #ready(shadow: Shadow, status: RaftStatus): void {
    this.#keepUp(shadow, status);
    if (!shadow.dirty) return;
    const { batch } = shadow;
    batch.ready = this.#line(shadow, "Ready");
    batch.handed = this.#durable(status);
    batch.told = { term: shadow.term, vote: shadow.vote, log: shadow.log, commit: shadow.commit };
    shadow.dirty = false;
    shadow.batch = newBatch();
    shadow.batches.push(shadow.batch);
  }

  // ---- elections -------------------------------------------------------------------------------------

  #becomeFollower(shadow: Shadow, status: RaftStatus): void {
    const { received } = shadow;
    if (received === null || received.msg!.term !== status.term || shadow.role !== "StateFollower")
      return this.#keepUp(shadow, status);
    const joined = received.state.term < status.term;
    const gaveIn = received.role === "StateCandidate" && received.name === "ReceiveAppendEntriesRequest";
    // The message itself made it a follower; the specification reads this line and does nothing.
    if (joined || gaveIn) this.#line(shadow, "BecomeFollower");
  }

  #becomeCandidate(shadow: Shadow, status: RaftStatus): void {
    if (shadow.role === "StateLeader") this.#stepDown(shadow);
    shadow.log = status.lastIndex;
    shadow.commit = status.commit;
    shadow.role = "StateCandidate";
    shadow.vote = shadow.id;
    // Terms that only pre-votes explain are told as timeouts.
    while (shadow.term < status.term) {
      shadow.term++;
      this.#line(shadow, "BecomeCandidate");
    }
    this.#tellSelf(shadow, "SendRequestVoteResponse", messageToSelf(shadow.id, shadow.term, "MsgVoteResp", 0));
  }

  #becomeLeader(shadow: Shadow, status: RaftStatus): void {
    this.#line(shadow, "ReceiveRequestVoteResponse", { msg: messageToSelf(shadow.id, shadow.term, "MsgVoteResp", 0) });
    this.#view(shadow, status);
    shadow.ownAppends = [];
    this.#line(shadow, "BecomeLeader");
  }

  #stepDown(shadow: Shadow): void {
    shadow.role = "StateFollower";
    this.#line(shadow, "BecomeFollower");
  }

  // ---- the leader ------------------------------------------------------------------------------------

  /** One more entry; after the last one of a proposal, etcd tells itself. */
  #appended(shadow: Shadow, lastIndex: number): void {
    shadow.log++;
    if (shadow.log < lastIndex) return;
    shadow.ownAppends.push(shadow.log);
    this.#tellSelf(
      shadow,
      "SendAppendEntriesResponse",
      messageToSelf(shadow.id, shadow.term, "MsgAppResp", shadow.log),
    );
  }

  #commit(shadow: Shadow, status: RaftStatus): void {
    const match = shadow.raft.progressOf(status.peer)?.match ?? 0;
    const counted = shadow.ownAppends.filter((index) => index <= match);
    for (const index of counted)
      this.#line(shadow, "ReceiveAppendEntriesResponse", {
        msg: messageToSelf(shadow.id, shadow.term, "MsgAppResp", index),
      });
    shadow.ownAppends = shadow.ownAppends.slice(counted.length);
    this.#keepUp(shadow, status, { configuration: false });
    this.#line(shadow, "Commit");
  }

  #changeConf(shadow: Shadow, status: RaftStatus, change: ConfChange): void {
    const actions = { "add-voter": "AddNewServer", "add-learner": "AddLearner", remove: "RemoveServer" } as const;
    const changes = change.operations.map(({ op, peer }) => ({ nid: this.#names.of(peer), action: actions[op] }));
    // As etcd: the entry that leaves a joint configuration is not told.
    if (changes.length > 0) this.#line(shadow, "ChangeConf", { prop: { cc: { changes } } });
    this.#appended(shadow, status.lastIndex + 1);
  }

  #applyConf(shadow: Shadow, configuration: Configuration): void {
    this.#line(shadow, "ApplyConfChange", { prop: { cc: { newconf: this.#names.conf(configuration)[0] } } });
    shadow.configuration = configuration;
  }

  // ---- messages --------------------------------------------------------------------------------------

  #send(shadow: Shadow, status: RaftStatus, name: TraceName, message: Message): void {
    this.#keepUp(shadow, status);
    const msg = this.#names.message(message);
    if (!REQUESTS.has(msg.type)) {
      if (shadow.answering && message.term === shadow.term)
        this.#register(shadow, msg, this.#line(shadow, name, { msg }));
      return;
    }
    const self = message.type === "MsgApp" ? shadow.raft.progressOf(status.peer) : undefined;
    const prop = self === undefined ? {} : { prop: { match: self.match, next: self.next } };
    this.#register(shadow, msg, this.#line(shadow, name, { msg, ...prop }));
  }

  #register(shadow: Shadow, msg: TracingMessage, line: Line): void {
    const key = JSON.stringify(msg);
    this.#sent.set(key, { line, batch: shadow.batch, left: (this.#sent.get(key)?.left ?? 0) + 1 });
  }

  #beginReceive(shadow: Shadow, status: RaftStatus, name: TraceName, message: Message): void {
    this.#keepUp(shadow, status);
    shadow.answering = false;
    shadow.received = null;
    if (message.type === "MsgVote") {
      if (message.term > status.term) {
        this.#held = { shadow, name, message };
        return;
      }
      // Whoever follows a leader of this term votes for nobody in it, in etcd as here. The specification would.
      if (message.term === status.term && status.vote === null && status.leader !== null) return;
    }
    // Refused for a term that the specification has not heard of yet.
    if (status.term > shadow.term && message.term < status.term) return;
    this.#receive(shadow, name, message);
  }

  #receive(shadow: Shadow, name: TraceName, message: Message): void {
    const msg = this.#names.message(message);
    const sent = this.#sent.get(JSON.stringify(msg));
    if (sent === undefined) return;
    if (sent.left > 0) sent.left--;
    else if (REQUESTS.has(msg.type)) sent.line.copies++;
    // An answer that comes a second time changes nothing.
    else return;
    sent.batch.received = true;
    const line = this.#line(shadow, name, { msg });
    shadow.received = line.event;
    shadow.answering = true;
    if (message.term > shadow.term) {
      shadow.term = message.term;
      shadow.vote = "0";
      shadow.role = "StateFollower";
    }
    const fromLeader = msg.type === "MsgApp" || msg.type === "MsgHeartbeat" || msg.type === "MsgSnap";
    if (fromLeader && message.term === shadow.term && shadow.role === "StateCandidate") shadow.role = "StateFollower";
  }

  #tellSelf(shadow: Shadow, name: TraceName, msg: TracingMessage): void {
    this.#register(shadow, msg, this.#line(shadow, name, { msg }));
  }

  // ---- lines -----------------------------------------------------------------------------------------

  /** What changed without an event of its own: a lost election, a configuration that took effect, a follower's log. */
  #keepUp(shadow: Shadow, status: RaftStatus, { configuration = true } = {}): void {
    const role = roleOf(status);
    if (shadow.role !== "StateFollower" && role === "StateFollower") this.#stepDown(shadow);
    this.#view(shadow, status);
    if (!configuration || sameConfiguration(shadow.configuration, status.configuration)) return;
    this.#applyConf(shadow, status.configuration);
  }

  #view(shadow: Shadow, status: RaftStatus): void {
    shadow.role = roleOf(status);
    shadow.commit = status.commit;
    shadow.log = status.lastIndex;
    if (status.term === shadow.term) shadow.vote = this.#names.orNone(status.vote);
  }

  #line(shadow: Shadow, name: TraceName, more: { msg?: TracingMessage; prop?: object } = {}): Line {
    const { id, term, vote, commit, role, log } = shadow;
    const conf = this.#names.conf(shadow.configuration);
    const line: Line = { event: { name, nid: id, state: { term, vote, commit }, role, log, conf, ...more }, copies: 1 };
    this.lines.push(line);
    shadow.dirty = true;
    shadow.received = null;
    return line;
  }
}

function newBatch(): Batch {
  return { ready: null, received: false, handed: null, told: null };
}

function sameConfiguration(a: Configuration, b: Configuration): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
