// The command line of `tenure cluster`: which question or step, checked before anything is asked.

import { CONNECTION_HELP, CONNECTION_KINDS, type ConnectionValues } from "../connection/connection.ts";
import { parseFlags, suggestion, UsageError } from "../kit/flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { oneName, refuseStray } from "../kit/words.ts";

const VERBS = ["status", "elections", "transfer", "drain", "resume", "snapshot"] as const;
const KEEP_MAX = 10_000;
const SNAPSHOT_VERBS = ["save", "verify"] as const;

export const CLUSTER_HELP = `tenure cluster VERB [--url URL[,URL…]] [-o table|json]: Tenure's own servers, seen and steered.

  status                 the members, who leads, what is wrong; works without a leader and with nodes down
  elections              the last elections, newest first, with their votes
  transfer               hands leadership to another voter; prints from whom to whom, and how long it took
  drain NODE             takes a node out: another leads, and it does not want to until drain --undo, or until it is started anew
  resume                 lets a cluster act that was restored with --paused
  snapshot save FILE     saves a snapshot on a server, fetches it, checks it and writes it to FILE
  snapshot save DIR --keep N   the same from a timer: to a file in DIR with the time as its name; the newest N such files stay
  snapshot verify FILE   checks such a file and the state in it; asks no server

  --watch            status: again every second, until SIGINT
  --to NODE          transfer: to this voter (default: the one that is best caught up)
  --force            transfer: do not wait until the target has caught up; it must still win its election
                     snapshot save: replace FILE if it is there
                     drain: also where nobody else can lead
  --undo             drain: it may lead again
  --history DIR      snapshot verify: copies of a node's files events-…: with which event history would begin after a restore
  --keep N           snapshot save: how many backups stay in DIR, with the new one (1 to 10000)
${CONNECTION_HELP}
exit codes: 0 done; 64 wrong use, a target that can't lead, or a place where FILE can't be written; 65 the file is no whole
snapshot; 69 nobody leads, no server answers, there is no such node, or the transfer failed and nothing has changed; 74 the disk here fails; 75 it may
have been done, look, or the disk here is full; 77 the key may not do this; 78 a wrong setting, a
certificate that is not trusted (--ca) or can't be used, or FILE is there already (docs/errors.md); 130 and 143 --watch or snapshot save was ended by SIGINT or SIGTERM
`;

const KINDS = {
  ...CONNECTION_KINDS,
  watch: "switch",
  to: "value",
  force: "switch",
  undo: "switch",
  keep: "value",
  history: "value",
} as const;

export type ClusterStep =
  | { readonly verb: "status"; readonly watch: boolean }
  | { readonly verb: "elections" }
  | { readonly verb: "resume" }
  | { readonly verb: "transfer"; readonly to: string | undefined; readonly force: boolean }
  | { readonly verb: "drain"; readonly node: string; readonly undo: boolean; readonly force: boolean }
  | { readonly verb: "snapshot-save"; readonly file: string; readonly force: boolean }
  | { readonly verb: "snapshot-keep"; readonly directory: string; readonly keep: number }
  | { readonly verb: "snapshot-verify"; readonly file: string; readonly history: string | undefined };

export interface ClusterFlags {
  readonly step: ClusterStep;
  readonly connection: ConnectionValues;
}

export function readClusterFlags(args: readonly string[]): ClusterFlags | "help" {
  const { values, words: before, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return "help";
  const words = [...before, ...(rest ?? [])];
  const { watch, to, force, undo, keep, history, ...connection } = values;
  const verb = chosen(words[0], VERBS);
  if (watch !== undefined && verb !== "status") throw new UsageError(`--watch belongs to status, not to ${verb}`);
  if (to !== undefined && verb !== "transfer") throw new UsageError(`--to belongs to transfer, not to ${verb}`);
  refuseStray(values, ["undo"], "drain", verb);
  refuseStray(values, ["keep", "history"], "snapshot", verb);
  const isForced = force !== undefined;
  if (verb === "drain") {
    if (isForced && undo !== undefined) throw new UsageError("--undo needs no --force");
    return {
      step: { verb, node: oneName("cluster", words), undo: undo !== undefined, force: isForced },
      connection,
    };
  }
  if (verb === "snapshot") return { step: snapshotStep(words, isForced, { keep, history }), connection };
  if (isForced && verb !== "transfer") {
    throw new UsageError(`--force belongs to transfer, drain and snapshot save, not to ${verb}`);
  }
  if (words.length > 1)
    throw new UsageError(
      `${verb} takes no ${JSON.stringify(words[1])}${verb === "transfer" ? "; the target is --to NODE" : ""}`,
    );
  if (to === "") throw new UsageError("--to must not be empty");
  if (verb === "transfer") return { step: { verb, to, force: isForced }, connection };
  return { step: verb === "status" ? { verb, watch: watch !== undefined } : { verb }, connection };
}

interface SnapshotFlags {
  readonly keep: string | undefined;
  readonly history: string | undefined;
}

function snapshotStep(words: readonly string[], force: boolean, { keep, history }: SnapshotFlags): ClusterStep {
  const [, verbWord, file, more] = words;
  const verb = chosen(verbWord, SNAPSHOT_VERBS, "snapshot ");
  if (file === undefined || file === "")
    throw new UsageError(`snapshot ${verb} needs a file: tenure cluster snapshot ${verb} FILE`);
  if (more !== undefined) throw new UsageError(`snapshot ${verb} takes one file, not ${words.length - 2}`);
  if (history !== undefined && verb !== "verify")
    throw new UsageError("--history belongs to snapshot verify, not to snapshot save");
  if (keep !== undefined) return keepStep(verb, file, force, keep);
  if (verb === "save") return { verb: "snapshot-save", file, force };
  if (force) throw new UsageError("--force belongs to snapshot save, not to snapshot verify");
  return { verb: "snapshot-verify", file, history };
}

function keepStep(verb: "save" | "verify", directory: string, force: boolean, text: string): ClusterStep {
  if (verb === "verify") throw new UsageError("--keep belongs to snapshot save, not to snapshot verify");
  if (force) throw new UsageError("--keep gives each file a name of its own, and needs no --force");
  const keep = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (keep < 1 || keep > KEEP_MAX)
    throw new UsageError(`--keep takes a number from 1 to ${KEEP_MAX}, not ${JSON.stringify(text)}`);
  return { verb: "snapshot-keep", directory, keep };
}

export function chosen<T extends string>(word: string | undefined, verbs: readonly T[], before = ""): T {
  if (word === undefined) throw new UsageError(`say what to do: ${verbs.map((verb) => before + verb).join(", ")}`);
  const verb = verbs.find((one) => one === word);
  if (verb !== undefined) return verb;
  const near = suggestion(word, verbs);
  throw new UsageError(
    `there is no ${JSON.stringify(before + word)}${near === "" ? `; give ${verbs.join(", ")}` : near}`,
  );
}
