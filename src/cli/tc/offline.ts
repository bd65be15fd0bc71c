// `tenure tc found|discard|recover`: the operator's word, where no rule may decide. The node is stopped: the lock of its data directory says so.

import { assertNever } from "../../contract/errors.ts";
import type { Output } from "../kit/output.ts";
import { UsageError } from "../kit/flags.ts";
import { json } from "../kit/output.ts";
import { printed } from "../kit/print.ts";
import { readConfig } from "../server/command.ts";

interface OfflineStep {
  readonly verb: "found" | "discard" | "recover";
  readonly isForced: boolean;
  readonly config: string | undefined;
}

/** What each of them costs, before anything is read. */
const COSTS: Readonly<Record<OfflineStep["verb"], string>> = {
  found:
    "found makes a cluster of coordinators of this node alone, and asks nobody. Where another node of tc.join has founded one, or does, there are two that refuse each other, and no transaction spans both until `tenure tc discard` on one side. Say --force if none of them has one",
  discard:
    "discard makes this node forget its cluster of coordinators: there it votes no more, and where the others alone are no majority of the voters nobody leads. It comes back as a new voter, where it is admitted. Say --force if that is what you want",
  recover:
    "recover makes this node the only voter of its cluster of coordinators. Done on both sides of a cut, or while a majority of the others still runs, it makes two clusters that both lead. Changes of the registry that this node has not received are lost. Say --force if a majority of the voters is gone for good",
};

export async function offline({ verb, isForced, config: file }: OfflineStep, output: Output): Promise<number> {
  if (!isForced) throw new UsageError(COSTS[verb]);
  const config = readConfig(file);
  if (config.backend !== null) {
    throw new UsageError("this node keeps its log in a database, and is no transaction coordinator");
  }
  const tools = await import("../../node/worlds/tc-offline.ts");
  const { text, data } = await work();
  return printed(output === "json" ? json(data) : text);

  async function work() {
    switch (verb) {
      case "found":
        return await tools.foundCoordinators(config);
      case "discard":
        return await tools.discardCoordinator(config);
      case "recover":
        return await tools.recoverCoordinators(config);
      default:
        return assertNever(verb, "tc");
    }
  }
}
