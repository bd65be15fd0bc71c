// The files of TLS for commands that ask a cluster: each is named by a flag, else by a variable, else by the client's file. They are
// read and tried here, not at the first connection: what a server would be said to refuse is wrong on this machine.

import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { TenureError } from "../../core/kit/errors.ts";
import type { ClientFile } from "./client-file.ts";
import { UsageError } from "../kit/flags.ts";

/** The variables are those of `--backend https://…` (backend.ts): one environment is enough for all commands. */
export const TLS_PLACES = {
  ca: { flag: "--ca", variable: "TENURE_SERVERS_CA_FILE", field: "ca_file" },
  cert: { flag: "--cert", variable: "TENURE_SERVERS_CERT_FILE", field: "cert_file" },
  "client-key": { flag: "--client-key", variable: "TENURE_SERVERS_KEY_FILE", field: "client_key_file" },
} as const;

type Name = keyof typeof TLS_PLACES;
type Environment = Readonly<Record<string, string | undefined>>;

export interface TlsTexts {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface Asked {
  readonly environment: Environment;
  readonly file: ClientFile | null;
  /** The client's file has chosen the servers. */
  readonly isUrlOfFile: boolean;
  /** Whether the file may tell these servers who one is. */
  readonly isFilesOwn: boolean;
  /** One of the servers that is not asked over TLS. */
  readonly open: string | undefined;
}

/** A file of TLS, and who named it. */
interface Named {
  readonly place: "flag" | "variable" | "field";
  readonly from: string;
  readonly path: string;
}

/** `certFrom`: the flag, the variable or the field that brought the certificate; null where there is none. */
export function readTls(
  values: Partial<Record<Name, string>>,
  asked: Asked,
): { readonly tls: TlsTexts | null; readonly certFrom: string | null } {
  const [ca, cert, key] = (["ca", "cert", "client-key"] as const).map((name) => namedOf(name, values[name], asked));
  if (cert === undefined && key !== undefined) throw lonely(key, "cert", asked.file);
  if (key === undefined && cert !== undefined) throw lonely(cert, "client-key", asked.file);
  if (ca === undefined && cert === undefined) return { tls: null, certFrom: null };
  if (asked.open !== undefined) {
    throw new UsageError(`--ca and --cert are for https:// URLs, and ${asked.open} is none`);
  }
  const tls = {
    ...(ca === undefined ? {} : { ca: contentsOf(ca.from, ca.path) }),
    ...(cert === undefined ? {} : { cert: contentsOf(cert.from, cert.path) }),
    ...(key === undefined ? {} : { key: contentsOf(key.from, key.path) }),
  };
  refuseUnusable(tls, ca, cert, key);
  return { tls, certFrom: cert?.from ?? null };
}

/** Servers without TLS have no use for these: a flag is a mistake then, and so is a file that says both; a variable is meant for others. */
function namedOf(name: Name, flag: string | undefined, asked: Asked): Named | undefined {
  const { file, open } = asked;
  const places = TLS_PLACES[name];
  if (flag !== undefined) return { place: "flag", from: places.flag, path: flag };
  const variable = asked.environment[places.variable];
  if (variable !== undefined && variable !== "" && open === undefined) {
    return { place: "variable", from: places.variable, path: variable };
  }
  const field = file?.says[places.field];
  if (file === null || field === undefined) return undefined;
  if (open === undefined) {
    const isMeant = name === "ca" || asked.isFilesOwn;
    return isMeant ? { place: "field", from: places.field, path: file.pathOf(field) } : undefined;
  }
  if (!asked.isUrlOfFile) return undefined;
  throw new TenureError("CONFIG_INVALID", `${file.path}: ${places.field} is for https:// URLs, and one of url is not.`);
}

function lonely({ place, from }: Named, other: Name, file: ClientFile | null): Error {
  const text = `${from} needs ${TLS_PLACES[other][place]} too`;
  if (place === "flag") return new UsageError(text);
  return new TenureError("CONFIG_INVALID", `${place === "field" ? `${file?.path}: ` : ""}${text}.`);
}

function refuseUnusable(tls: TlsTexts, ca: Named | undefined, cert: Named | undefined, key: Named | undefined): void {
  try {
    createSecureContext(tls);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    const text =
      code === "ERR_OSSL_X509_KEY_VALUES_MISMATCH"
        ? `${listed(key)} is not the key of ${listed(cert)}. Give the two that were issued together (\`tenure cert show\`).`
        : `${listed(ca, cert, key)} can't be used: ${message}. They are PEM files.`;
    throw new TenureError("CERTIFICATE_INVALID", text, { cause: error });
  }
}

function listed(...files: readonly (Named | undefined)[]): string {
  return files.flatMap((one) => (one === undefined ? [] : [`${one.from} ${one.path}`])).join(", ");
}

/** `from`: the flag, the variable or the field that names the file. */
export function contentsOf(from: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : (error as Error).message;
    throw new TenureError("CONFIG_INVALID", `${from}: can't read ${file}: ${why}.`, { cause: error });
  }
}
