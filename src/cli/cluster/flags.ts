// The command line of `tenure cluster`: which question or step, checked before anything is asked.

import { CONNECTION_KINDS } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { CLUSTER } from "./help.ts";
import type { StepFlags } from "../connection/connection.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { withLongOutput } from "../kit/output.ts";
import { chosen, oneName, refuseStray } from "../kit/words.ts";
import { BACKUPS_KEPT_MAX } from "../limits.ts";

const VERBS = verbsOf(CLUSTER);
const SNAPSHOT_VERBS = ["save", "verify"] as const;

const KINDS = { ...CONNECTION_KINDS, ...kindsOf(CLUSTER) };

export type ClusterStep =
  | { readonly verb: "status"; readonly watch: boolean }
  | { readonly verb: "elections" }
  | { readonly verb: "resume" }
  | { readonly verb: "transfer"; readonly to: string | undefined; readonly force: boolean }
  | { readonly verb: "drain"; readonly node: string; readonly undo: boolean; readonly force: boolean }
  | { readonly verb: "snapshot-save"; readonly file: string; readonly force: boolean }
  | { readonly verb: "snapshot-keep"; readonly directory: string; readonly keep: number }
  | { readonly verb: "snapshot-verify"; readonly file: string; readonly history: string | undefined };

export function readClusterFlags(args: readonly string[]): StepFlags<ClusterStep> | "help" {
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
  if (keep < 1 || keep > BACKUPS_KEPT_MAX)
    throw new UsageError(`--keep takes a number from 1 to ${BACKUPS_KEPT_MAX}, not ${JSON.stringify(text)}`);
  return { verb: "snapshot-keep", directory, keep };
}
