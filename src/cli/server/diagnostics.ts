// What a node shows of itself for `tenure support bundle`: its configuration and the last lines of its log, without secrets.
//
// Two guards, because the lines go to people outside. What is configured is shown by field, and no field holds a secret but the
// ones that are hidden here. What is logged is text: the secrets that this process knows are searched for in it, and so is
// whatever has the form of one.

import type { Diagnostics } from "../../api/index.ts";
import type { ServerConfig } from "../../contract/index.ts";
import type { LogSink } from "../../drivers/telemetry/index.ts";
import { effective } from "../config/show.ts";
import { hider } from "../support/secrets.ts";

export function diagnosticsOf(config: ServerConfig, logs: Pick<LogSink, "recent">): Diagnostics {
  const hide = hider(config.backend === null ? [] : passwordsIn(config.backend));
  return {
    runtime: `node ${process.version} ${process.platform} ${process.arch}`,
    uptimeMs: process.uptime() * 1_000,
    rssBytes: process.memoryUsage.rss(),
    // A hash is no key, but nobody who helps needs it.
    config: { ...effective(config), keys: config.keys.map(({ name, role }) => ({ name, role })) },
    logLines: logs.recent().map(hide),
  };
}

/** As they are in the URL, and as a database gets them. */
function passwordsIn(url: string): string[] {
  const parsed = URL.parse(url);
  const found = [parsed?.password ?? "", parsed?.searchParams.get("password") ?? ""];
  return found.flatMap((one) => [one, decoded(one)]).filter((one) => one !== "");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
