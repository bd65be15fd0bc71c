// The commands of `tenure` and their flags, in one table: shells complete from it, the first help page is made of it, and a
// test compares it with what each command's --help says.

export interface FlagEntry {
  readonly name: `-${string}`;
  /** What follows it: nothing, anything, a file, or one of these. */
  readonly value: "none" | "any" | "file" | readonly string[];
}

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** The word behind it, and the words behind that one. */
  readonly verbs: Readonly<Record<string, readonly string[] | "file" | "any" | "none">>;
  readonly flags: readonly FlagEntry[];
}

const HELP: FlagEntry = { name: "--help", value: "none" };
const OUTPUT: FlagEntry = { name: "-o", value: ["table", "json"] };
const LIST_OUTPUT: FlagEntry = { name: "-o", value: ["table", "json", "jsonl"] };
const BACKEND: FlagEntry = { name: "--backend", value: "any" };
const SCOPE: FlagEntry = { name: "--scope", value: "any" };
const CONNECTION: readonly FlagEntry[] = [
  { name: "--url", value: "any" },
  { name: "--key", value: "any" },
  { name: "--ca", value: "file" },
  { name: "--cert", value: "file" },
  { name: "--client-key", value: "file" },
  OUTPUT,
  HELP,
];
/** Of commands that list or follow something. */
const LISTING: readonly FlagEntry[] = [...CONNECTION.filter((flag) => flag !== OUTPUT), LIST_OUTPUT];

/** In the order of the first help page. */
export const COMMAND_TABLE: readonly CommandEntry[] = [
  {
    name: "run",
    summary: "run a command only while this instance leads",
    verbs: {},
    flags: [
      SCOPE,
      BACKEND,
      { name: "--on-lose", value: ["stop", "kill"] },
      { name: "--grace", value: "any" },
      { name: "--drain", value: "any" },
      { name: "--once", value: "none" },
      { name: "--forever", value: "none" },
      { name: "--wait", value: "any" },
      { name: "--identity", value: "any" },
      { name: "--quiet", value: "none" },
      { name: "--log", value: ["text", "json"] },
      HELP,
    ],
  },
  {
    name: "scope",
    summary: "who leads what: list, show, watch, history, resign",
    verbs: { list: "none", show: "any", watch: "any", history: "any", resign: "any" },
    flags: [BACKEND, SCOPE, { name: "--wait", value: "any" }, { name: "--force", value: "none" }, OUTPUT, HELP],
  },
  {
    name: "doctor",
    summary: "what could go wrong with this backend, and how to fix it",
    verbs: {},
    flags: [BACKEND, SCOPE, { name: "--strict", value: "none" }, OUTPUT, HELP],
  },
  {
    name: "schema",
    summary: "the tables and functions in Postgres: print, apply, check",
    verbs: { print: "none", apply: "none", check: "none" },
    flags: [BACKEND, { name: "--schema", value: "any" }, OUTPUT, HELP],
  },
  {
    name: "server",
    summary: "one node of Tenure's own cluster: start, controller, recover, restore",
    verbs: { start: "none", controller: "none", recover: "none", restore: "none" },
    flags: [
      { name: "--config", value: "file" },
      BACKEND,
      { name: "--bootstrap", value: "none" },
      { name: "--force-new-cluster", value: "none" },
      { name: "--paused", value: "none" },
      { name: "--snapshot", value: "file" },
      { name: "--history", value: "file" },
      OUTPUT,
      HELP,
    ],
  },
  {
    name: "cluster",
    summary: "that cluster, seen and steered: status, elections, transfer, drain, resume, snapshot",
    verbs: {
      status: "none",
      elections: "none",
      transfer: "none",
      drain: "any",
      resume: "none",
      snapshot: ["save", "verify"],
    },
    flags: [
      { name: "--watch", value: "none" },
      { name: "--to", value: "any" },
      { name: "--force", value: "none" },
      { name: "--undo", value: "none" },
      { name: "--keep", value: "any" },
      { name: "--history", value: "file" },
      ...CONNECTION,
    ],
  },
  {
    name: "member",
    summary: "who belongs to it: add, promote, replace, remove",
    verbs: { add: "any", promote: "any", replace: "any", remove: "any" },
    flags: [{ name: "--voter", value: "none" }, { name: "--force", value: "none" }, ...CONNECTION],
  },
  {
    name: "key",
    summary: "API keys that it keeps, by role: create, list, revoke",
    verbs: { create: "none", list: "none", revoke: "any" },
    flags: [
      { name: "--role", value: ["viewer", "submitter", "agent", "client", "backup", "operator"] },
      { name: "--name", value: "any" },
      { name: "--offline", value: "none" },
      ...CONNECTION,
    ],
  },
  {
    name: "job",
    summary: "work for its agents: submit, list, show, logs, cancel, retry, wait",
    verbs: { submit: "any", list: "none", show: "any", logs: "any", cancel: "any", retry: "any", wait: "any" },
    flags: [
      { name: "--payload", value: "any" },
      { name: "--payload-file", value: "file" },
      { name: "--queue", value: "any" },
      { name: "--priority", value: "any" },
      { name: "--label", value: "any" },
      { name: "--platform", value: "any" },
      { name: "--not-before", value: "any" },
      { name: "--attempts", value: "any" },
      { name: "--losses", value: "any" },
      { name: "--backoff", value: "any" },
      { name: "--timeout", value: "any" },
      { name: "--retention", value: "any" },
      { name: "--concurrency", value: "any" },
      { name: "--env", value: "any" },
      { name: "--cwd", value: "any" },
      { name: "--idempotency-key", value: "any" },
      { name: "--detach", value: "none" },
      {
        name: "--state",
        value: ["pending", "assigned", "building", "cancelling", "completed", "failed", "cancelled"],
      },
      { name: "--kind", value: "any" },
      { name: "--agent", value: "any" },
      { name: "--search", value: "any" },
      { name: "--limit", value: "any" },
      { name: "--attempt", value: "any" },
      { name: "--follow", value: "none" },
      ...LISTING,
    ],
  },
  {
    name: "agent",
    summary: "who runs its jobs: start, list, show, drain, remove",
    verbs: { start: "none", list: "none", show: "any", drain: "any", remove: "any" },
    flags: [
      { name: "--undo", value: "none" },
      { name: "--server", value: "any" },
      { name: "--name", value: "any" },
      { name: "--capacity", value: "any" },
      { name: "--label", value: "any" },
      { name: "--platform", value: "any" },
      { name: "--kinds", value: ["exec"] },
      { name: "--lease", value: "any" },
      { name: "--grace", value: "any" },
      { name: "--drain", value: "any" },
      { name: "--log-level", value: ["trace", "debug", "info", "warn", "error", "silent"] },
      ...LISTING,
    ],
  },
  {
    name: "queue",
    summary: "where jobs wait: list, pause, resume",
    verbs: { list: "none", pause: "any", resume: "any" },
    flags: LISTING,
  },
  {
    name: "schedule",
    summary: "jobs that come by the clock: list, show, put, delete",
    verbs: { list: "none", show: "any", put: "any", delete: "any" },
    flags: [
      { name: "--cron", value: "any" },
      { name: "--time-zone", value: "any" },
      { name: "--overlap", value: ["skip", "allow"] },
      { name: "--catch-up", value: ["none", "last", "all"] },
      { name: "--paused", value: "none" },
      { name: "--file", value: "file" },
      { name: "--kind", value: "any" },
      { name: "--payload", value: "any" },
      { name: "--payload-file", value: "file" },
      { name: "--queue", value: "any" },
      { name: "--priority", value: "any" },
      { name: "--label", value: "any" },
      { name: "--platform", value: "any" },
      { name: "--attempts", value: "any" },
      { name: "--losses", value: "any" },
      { name: "--backoff", value: "any" },
      { name: "--timeout", value: "any" },
      { name: "--retention", value: "any" },
      { name: "--concurrency", value: "any" },
      { name: "--env", value: "any" },
      { name: "--cwd", value: "file" },
      ...LISTING,
    ],
  },
  {
    name: "event",
    summary: "everything that happens there, sealed: tail, verify",
    verbs: { tail: "none", verify: "none" },
    flags: [
      { name: "--after", value: "any" },
      { name: "--type", value: "any" },
      { name: "--entity-id", value: "any" },
      { name: "--entity-type", value: ["build", "worker", "queue", "schedule", "key", "controller"] },
      { name: "--limit", value: "any" },
      { name: "--no-follow", value: "none" },
      ...LISTING,
    ],
  },
  {
    name: "cert",
    summary: "certificates for nodes, operators and programs: init, issue, show, revoke, revoked",
    verbs: { init: "none", issue: "none", show: "file", revoke: "file", revoked: "none" },
    flags: [
      { name: "--dir", value: "file" },
      { name: "--out", value: "file" },
      { name: "--node-id", value: "any" },
      { name: "--operator", value: "any" },
      { name: "--sdk", value: "any" },
      { name: "--submitter", value: "any" },
      { name: "--agent", value: "any" },
      { name: "--backup", value: "any" },
      { name: "--viewer", value: "any" },
      { name: "--host", value: "any" },
      { name: "--drop-host", value: "any" },
      { name: "--trust-domain", value: "any" },
      { name: "--days", value: "any" },
      { name: "--force", value: "none" },
      ...CONNECTION,
    ],
  },
  {
    name: "config",
    summary: "a server's configuration file, or your own: check, show",
    verbs: { check: "file", show: "file" },
    flags: [{ name: "--client", value: "none" }, OUTPUT, HELP],
  },
  {
    name: "support",
    summary: "what to send along with a question: bundle",
    verbs: { bundle: "file" },
    flags: CONNECTION,
  },
  {
    name: "dev",
    summary: "three nodes on this machine with sample jobs, to look at and to kill",
    verbs: {},
    flags: [{ name: "--for", value: "any" }, { name: "--json", value: "none" }, HELP],
  },
  {
    name: "completion",
    summary: "a script for your shell: bash, zsh, fish",
    verbs: { bash: "none", zsh: "none", fish: "none" },
    flags: [HELP],
  },
  { name: "version", summary: "the version", verbs: {}, flags: [] },
];

/** What takes a value, whatever the command: a shell must skip it to find the next word. */
export const VALUE_FLAGS: readonly string[] = [
  ...new Set(
    COMMAND_TABLE.flatMap(({ flags }) => flags.filter(({ value }) => value !== "none").map(({ name }) => name)),
  ),
];
