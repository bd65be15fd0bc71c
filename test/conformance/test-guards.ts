// The guards that the conformance tests of specs/node-controller.md §9 are about, taken out one at a time, and which test must
// fail then, by which of its assertions. Source lines of the servers are changed as they are loaded; none of it is in
// production code. What one layer lets through the next one stops, so some plants open several of them.

import type { Edit } from "../../src/sim/mutants/patch.ts";

export type TestNumber = 1 | 2 | 3 | 4 | 5;
export type BackendName = "their own consensus" | "Postgres";

export interface MissingGuard {
  readonly name: string;
  readonly edits: Readonly<Record<BackendName, readonly Edit[]>>;
  readonly fails: TestNumber;
  /** The assertion's own words. */
  readonly by: RegExp;
  /** Those that are about other guards, and pass all the same. */
  readonly passes: readonly TestNumber[];
}

const SERVICE = "controller/journal/service.ts";
const RAFT_LOG = "logs/raft/raft-log.ts";
const SCHEMA_LOG = "postgres/schema/log.ts";

/** The first door: whoever asks a node that does not lead is sent away before anything is looked at. */
const OPEN_DOOR: Edit = {
  file: "api/endpoints.ts",
  find: "if (route.isFenced === true) requireLeader(service);",
  replace: "",
};

/** What the journal takes for its leadership: the node's own, and where that says no, `otherwise`. */
function openGate(otherwise: string): Edit {
  return {
    file: SERVICE,
    find: "constructor(options: JournalServiceOptions) {",
    replace: `constructor(given: JournalServiceOptions) {
    const own = given.leadership;
    let led = null;
    const leadership = {
      epoch: () => (led = own.epoch() ?? ${otherwise}),
      isTurningOver: () => own.isTurningOver(),
      confirm: () => own.confirm(),
      subscribe: (listener) => own.subscribe(listener),
    };
    const others = Object.getOwnPropertyDescriptors(given);
    const options = Object.defineProperties({}, { ...others, leadership: { value: leadership, enumerable: true } });`,
  };
}

/** A standby takes the epoch that it sees in the log for its own. */
const EVERYBODY_LEADS: readonly Edit[] = [
  OPEN_DOOR,
  openGate("(given.log.head().epoch || null)"),
  {
    file: "controller/leadership/reign.ts",
    find: "now(): T | null {",
    replace: "now(): T | null {\n    this.#look();",
  },
];

/** Whoever has led once goes on in that epoch. */
const STILL_LEADS: readonly Edit[] = [OPEN_DOOR, openGate("led")];

/** Who does not lead has opened the log as well. */
const RAFT_OPENS_FOR_ALL: Edit = {
  file: RAFT_LOG,
  find: "if (!this.#leads(epoch)) throw notLeading(`epoch ${epoch} can't be opened here: this node does not lead in it.`);",
  replace: `if (!this.#leads(epoch)) {
      this.#tail = { epoch, position: this.#feed.position, revision: 0 };
      return { outcome: "opened", head: this.head() };
    }`,
};

/** What a node appends that does not lead, or does not lead any more, it acknowledges alone. */
const RAFT_APPENDS_FOR_ALL: readonly Edit[] = [
  {
    file: RAFT_LOG,
    find: '"a batch is bounded", () => String(batch.length));\n    if (epoch < this.#epoch) return { outcome: "fenced", epoch: this.#epoch };',
    replace: '"a batch is bounded", () => String(batch.length));',
  },
  {
    file: RAFT_LOG,
    find: 'if (!this.#leads(epoch)) return { outcome: "fenced", epoch: null };',
    replace: 'if (!this.#leads(epoch)) return { outcome: "committed", position: after + batch.length };',
  },
  // It may hear that it does not lead by this very proposal.
  {
    file: RAFT_LOG,
    find: 'return this.#refused(tail, revision, after, outcome);\n      case "unknown":\n        return { outcome: "unknown" };',
    replace: 'case "unknown":\n        return { outcome: "committed", position: after + batch.length };',
  },
];

/** Two may have opened one epoch. */
const POSTGRES_OPENS_FOR_ALL: Edit = {
  file: SCHEMA_LOG,
  find: "opened = h.opened + 1,",
  replace: "opened = h.opened + (h.epoch <> p_epoch)::integer,",
};

/** The database takes what anybody sends, also to where something stands already. */
const POSTGRES_APPENDS_FOR_ALL: readonly Edit[] = [
  {
    file: SCHEMA_LOG,
    find: "\n      and h.epoch = p_epoch and h.opened = p_opened\n      and h.position = p_after",
    replace: "",
  },
  { file: SCHEMA_LOG, find: "if v_count <> cardinality(p_lengths) then", replace: "if false then" },
  {
    file: "logs/postgres/writer.ts",
    find: 'if (epoch < applied.epoch) return { outcome: "fenced", epoch: applied.epoch };',
    replace: "",
  },
];

const SPLIT_BRAIN = {
  "their own consensus": [...EVERYBODY_LEADS, RAFT_OPENS_FOR_ALL, ...RAFT_APPENDS_FOR_ALL],
  Postgres: [...EVERYBODY_LEADS, POSTGRES_OPENS_FOR_ALL, ...POSTGRES_APPENDS_FOR_ALL],
};

/** On both backends alike: it is decided above the log. */
function onBoth(...edits: readonly Edit[]): MissingGuard["edits"] {
  return { "their own consensus": edits, Postgres: edits };
}

export const MISSING_GUARDS: readonly MissingGuard[] = [
  {
    name: "a standby that takes mutations",
    edits: SPLIT_BRAIN,
    fails: 1,
    by: /expected \{ path: '\/v1\/jobs', status: 200, .* to match object \{ path: '\/v1\/jobs', status: 409,/,
    passes: [],
  },
  {
    name: "a lock that everybody holds",
    edits: SPLIT_BRAIN,
    fails: 2,
    by: /expected \[ 200, 200, \d+ \] to deeply equal \[ 200, 409, 409 \]/,
    passes: [],
  },
  {
    name: "leadership that is acquired without a new epoch",
    edits: {
      "their own consensus": [
        {
          file: "core/raft/raft.ts",
          find: "const term = ++this.#state.term;",
          replace: "const term = (this.#state.term = Math.max(1, this.#state.term));",
        },
        // One term is then voted and led in more than once, which the rest of Raft would not have.
        {
          file: "core/raft/raft.ts",
          find: "= vote === message.from || (vote === null && leader === null);",
          replace: "= true;",
        },
        { file: "core/raft/admission.ts", find: "if (claimsToLead && ", replace: "if (claimsToLead && false && " },
        { file: "engine/storage.ts", find: "assert(isSameVote, ", replace: "assert(isSameVote || true, " },
      ],
      Postgres: [
        {
          file: "postgres/schema/functions.ts",
          find: "v_epoch := greatest(v_old.epoch + 1,",
          replace: "v_epoch := greatest(v_old.epoch, 1,",
        },
      ],
    },
    fails: 3,
    by: /expected (\d+) to be greater than \1$/,
    passes: [1, 2, 5],
  },
  {
    name: "a leader that takes results of an epoch before its own",
    edits: onBoth({
      file: "core/jobs/decide/results.ts",
      find: "if (call.leaderEpoch !== context.leaderEpoch) return stale(call, context);",
      replace: "",
    }),
    fails: 4,
    by: /expected '\{"results":\[\{"ok":true.*' to contain 'STALE_EPOCH'/,
    passes: [1, 2, 3, 5],
  },
  {
    name: "an old leader that goes on when its epoch is over",
    edits: {
      "their own consensus": [...STILL_LEADS, ...RAFT_APPENDS_FOR_ALL],
      Postgres: [...STILL_LEADS, ...POSTGRES_APPENDS_FOR_ALL],
    },
    fails: 4,
    by: /^\{"results":\[\{"ok":true.*: expected \{ status: 200.* to not match object \{ status: 200 \}/s,
    passes: [1, 2, 5],
  },
  {
    name: "a result that is taken whatever its job_epoch is",
    edits: onBoth({
      file: "core/jobs/decide/results.ts",
      find: "return run !== null && run.session === session && isSameLease(run, ref);",
      replace: "return run !== null;",
    }),
    fails: 5,
    by: /expected '\{"results":\[\{"ok":true.*' to contain 'STALE_EPOCH'/,
    passes: [1, 2, 3, 4],
  },
];
