// The places that say what a server's configuration is: flags go before variables, variables before the file. A mistake is named as its place names it.

import type { Mistake } from "../shape.ts";
import { meshFlagOf, type MeshFlags, withMeshFlags } from "./mesh.ts";
import { SERVER_ENVIRONMENT } from "./server-schema.ts";

export interface Places {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Of the command line's --backend, which goes before the environment's. */
  readonly backend?: string | undefined;
  /** Of the command line's flags of the mesh, by their fields in `[mesh]`: they go before the file's. */
  readonly mesh?: MeshFlags | undefined;
  /** Of the command line's --join. */
  readonly join?: readonly string[] | undefined;
}

/** Fields that are lists: a variable has commas between their values. */
const LISTS: ReadonlySet<string> = new Set(["tc.join"]);

/** The file with what the other places say. An empty variable counts as unset. */
export function withPlaces(raw: unknown, { environment, backend, mesh = {}, join }: Places): unknown {
  if (!isPlainObject(raw)) return raw;
  const file: Record<string, unknown> = { ...raw };
  const set = (section: string, field: string, value: unknown): void => {
    const found = file[section] ?? {};
    if (isPlainObject(found)) file[section] = { ...found, [field]: value };
  };
  for (const [variable, [section, field]] of Object.entries(SERVER_ENVIRONMENT)) {
    const value = environment[variable]?.trim();
    if (!isSet(value)) continue;
    if (field === undefined) file[section] = value;
    else set(section, field, LISTS.has(`${section}.${field}`) ? listOf(value) : value);
  }
  if (backend !== undefined) file["backend"] = backend;
  if (isPlainObject(file["mesh"] ?? {})) Object.assign(file, withMeshFlags(file, mesh));
  if (join !== undefined) set("tc", "join", join);
  return file;
}

/** Of a flag or a variable: the values between its commas. */
export function listOf(text: string): readonly string[] {
  return text.split(",").map((one) => one.trim());
}

/** Who gave a flag or set a variable looks for its name, not for the field's. */
export function namedByPlace(mistake: Mistake, { environment, backend, mesh = {}, join }: Places): Mistake {
  const { field } = mistake;
  if (field === "backend" && backend !== undefined) return { ...mistake, field: "--backend" };
  const flag = meshFlagOf(field, mesh);
  if (flag !== null) return { ...mistake, field: flag };
  // The third value of a list is a mistake of the flag or the variable as a whole.
  const whole = field.replace(/\[\d+\]$/, "");
  if (whole === "tc.join" && join !== undefined) return { ...mistake, field: "--join" };
  const found = Object.entries(SERVER_ENVIRONMENT).find(([, path]) => path.join(".") === whole)?.[0];
  return found !== undefined && isSet(environment[found]?.trim()) ? { ...mistake, field: found } : mistake;
}

export function isSet(value: string | undefined): value is string {
  return value !== undefined && value.trim() !== "";
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
