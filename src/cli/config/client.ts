// `tenure config show --client`: where commands look for a cluster, as whom they ask, and who said so. A key is never shown.

import { ClientConfigFile } from "../../contract/index.ts";
import { type ClientFile, readClientFile } from "../connection/client-file.ts";
import { TLS_PLACES } from "../connection/tls.ts";
import { URL_DEFAULT } from "../kit/connection-help.ts";
import type { Setting } from "./show.ts";

type Environment = Readonly<Record<string, string | undefined>>;
type Field = keyof ClientConfigFile;

const VARIABLES: Partial<Record<Field, string>> = {
  url: "TENURE_URL",
  key: "TENURE_API_KEY",
  key_file: "TENURE_API_KEY_FILE",
  ...Object.fromEntries(Object.values(TLS_PLACES).map(({ field, variable }) => [field, variable])),
};
const DEFAULTS: Partial<Record<Field, unknown>> = { url: URL_DEFAULT, output: "table" };
const HIDDEN = "…";

export interface ClientSettings {
  /** Null: there is none. */
  readonly file: string | null;
  readonly settings: readonly Setting[];
  readonly warnings: readonly string[];
}

export async function clientSettings(environment: Environment): Promise<ClientSettings> {
  const file = await readClientFile(environment);
  const fields = Object.keys(ClientConfigFile.properties) as Field[];
  const settings = fields.map((field) => settingOf(field, file, environment));
  return { file: file?.path ?? null, settings: settings.map(withoutLoser(settings)), warnings: file?.warnings ?? [] };
}

function settingOf(key: Field, file: ClientFile | null, environment: Environment): Setting {
  const variable = VARIABLES[key];
  const said = variable === undefined ? undefined : environment[variable];
  if (variable !== undefined && said !== undefined && said !== "") {
    return { key, value: key === "key" ? HIDDEN : said, from: "environment", variable };
  }
  const value = file?.says[key];
  if (file === null || value === undefined) {
    return { key, value: DEFAULTS[key] ?? null, from: "default", variable: null };
  }
  const shown = key === "key" ? HIDDEN : key.endsWith("_file") ? file.pathOf(value as string) : value;
  return { key, value: shown, from: "file", variable: null };
}

const NONE = { value: null, from: "default", variable: null } as const;

/** One key counts: TENURE_API_KEY goes before TENURE_API_KEY_FILE, and a variable before the file. */
function withoutLoser(all: readonly Setting[]): (one: Setting) => Setting {
  const of = (key: Field) => all.find((one) => one.key === key);
  const key = of("key");
  const keyFile = of("key_file");
  const loser = key?.from === "environment" || keyFile?.from !== "environment" ? "key_file" : "key";
  const isBoth = key?.from !== "default" && keyFile?.from !== "default";
  return (one) => (isBoth && one.key === loser ? { key: one.key, ...NONE } : one);
}
