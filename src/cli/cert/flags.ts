// The command line of `tenure cert`: what to make or to show, checked before any file is touched.

import { CONNECTION_KINDS } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { CERT, DIRECTORY_DEFAULT } from "./help.ts";
import { isIP } from "node:net";
import { IDENTITY_KINDS, type IdentityKind, parseSpiffeId, TRUST_DOMAIN_DEFAULT } from "../../core/kit/spiffe.ts";
import type { ConnectionValues } from "../connection/connection.ts";
import { oneOf, parseFlags, UsageError } from "../kit/flags.ts";
import { type Output, OUTPUTS, withLongOutput } from "../kit/output.ts";
import { chosen } from "../kit/words.ts";
import { CERTIFICATE_DAYS_MAX, CERTIFICATE_FILES_MAX, HOSTS_MAX, TRUST_DOMAIN_LETTERS_MAX } from "../limits.ts";

const VERBS = verbsOf(CERT);

const KINDS = { ...CONNECTION_KINDS, ...kindsOf(CERT) };
type Flag = keyof typeof KINDS;

/** Who it is for: each kind of identity has a flag of its name, but for a node's. */
type NameFlag = "node-id" | Exclude<IdentityKind, "server">;
const NAMES: readonly (NameFlag & Flag)[] = IDENTITY_KINDS.map((kind): NameFlag =>
  kind === "server" ? "node-id" : kind,
);

const CONNECTION_FLAGS = Object.keys(CONNECTION_KINDS) as (keyof typeof CONNECTION_KINDS)[];
const ALLOWED: Readonly<Record<(typeof VERBS)[number], readonly Flag[]>> = {
  init: ["dir", "trust-domain", "days", "force", "output", "help"],
  issue: ["dir", "out", ...NAMES, "host", "drop-host", "days", "force", "output", "help"],
  show: ["output", "help"],
  revoke: CONNECTION_FLAGS,
  revoked: CONNECTION_FLAGS,
};

export type CertFlags =
  | {
      readonly verb: "init";
      readonly dir: string;
      readonly trustDomain: string;
      readonly days: number | undefined;
      readonly force: boolean;
      readonly output: Output;
    }
  | {
      readonly verb: "issue";
      readonly dir: string;
      readonly out: string;
      readonly kind: IdentityKind;
      /** Null: the node that is there, or a new one. */
      readonly name: string | null;
      readonly hosts: readonly string[];
      /** Not to be kept. */
      readonly dropped: readonly string[];
      readonly days: number | undefined;
      readonly force: boolean;
      readonly output: Output;
    }
  | { readonly verb: "show"; readonly files: readonly string[]; readonly output: Output }
  | { readonly verb: "revoke"; readonly file: string; readonly connection: ConnectionValues }
  | { readonly verb: "revoked"; readonly connection: ConnectionValues };

export function readCertFlags(args: readonly string[]): CertFlags | "help" {
  const { values, words, rest } = parseFlags<Flag>(withLongOutput(args), KINDS);
  if (values.help !== undefined) return "help";
  const [verbWord, ...others] = [...words, ...(rest ?? [])];
  const verb = chosen(verbWord, VERBS);
  const stray = (Object.keys(values) as Flag[]).find((flag) => !ALLOWED[verb].includes(flag));
  if (stray !== undefined) throw new UsageError(`--${stray} does not belong to ${verb}`);
  const output = oneOf("-o", values.output ?? "table", OUTPUTS);
  if (verb === "show") {
    if (others.length === 0) throw new UsageError("show needs a file: tenure cert show FILE...");
    if (others.length > CERTIFICATE_FILES_MAX)
      throw new UsageError(`show takes at most ${CERTIFICATE_FILES_MAX} files`);
    return { verb, files: others, output };
  }
  if (verb === "revoke") {
    const [file, more] = others;
    if (file === undefined) throw new UsageError("revoke needs a file: tenure cert revoke FILE");
    if (more !== undefined) throw new UsageError(`revoke takes one file, and found ${JSON.stringify(more)} after it`);
    return { verb, file, connection: values };
  }
  if (others.length > 0) throw new UsageError(`${verb} takes no ${JSON.stringify(others[0])}`);
  if (verb === "revoked") return { verb, connection: values };
  const dir = notEmpty("--dir", values.dir ?? DIRECTORY_DEFAULT);
  const common = { dir, days: daysOf(values.days), force: values.force !== undefined, output };
  if (verb === "init") return { verb, ...common, trustDomain: trustDomainOf(values["trust-domain"]) };
  return {
    verb,
    ...common,
    out: notEmpty("--out", values.out ?? dir),
    ...identityOf(values),
    hosts: hostsOf("--host", values.host),
    dropped: hostsOf("--drop-host", values["drop-host"]),
  };
}

function identityOf(values: Partial<Record<Flag, string>>): { kind: IdentityKind; name: string | null } {
  const named = NAMES.filter((flag) => values[flag] !== undefined);
  if (named.length > 1) throw new UsageError(`give one of ${named.map((flag) => `--${flag}`).join(" and ")}`);
  const flag = named[0] ?? "node-id";
  const kind = flag === "node-id" ? "server" : flag;
  for (const one of ["host", "drop-host"] as const) {
    if (values[one] !== undefined && kind !== "server")
      throw new UsageError(`--${one} belongs to a node's certificate`);
  }
  const name = values[flag] ?? null;
  if (name !== null && parseSpiffeId(`spiffe://${TRUST_DOMAIN_DEFAULT}/${kind}/${name}`) === undefined) {
    const letters = kind === "server" ? "a–z, 0–9 and -" : "letters, digits, '.', '_' and -";
    throw new UsageError(`--${flag} takes up to 63 of ${letters}, not ${JSON.stringify(name)}`);
  }
  return { kind, name };
}

function trustDomainOf(text = TRUST_DOMAIN_DEFAULT): string {
  const fits = text.length <= TRUST_DOMAIN_LETTERS_MAX && parseSpiffeId(`spiffe://${text}/server/n1`) !== undefined;
  if (fits) return text;
  throw new UsageError(
    `--trust-domain takes up to ${TRUST_DOMAIN_LETTERS_MAX} of a–z, 0–9, '.' and -, not ${JSON.stringify(text)}`,
  );
}

function daysOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const days = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= CERTIFICATE_DAYS_MAX) return days;
  throw new UsageError(`--days takes a number from 1 to ${CERTIFICATE_DAYS_MAX}, not ${JSON.stringify(text)}`);
}

function hostsOf(flag: string, text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  const hosts = text.split(",").map((host) => host.trim());
  const wrong = hosts.find((host) => isIP(host) === 0 && !isName(host));
  if (wrong !== undefined)
    throw new UsageError(`${flag} takes names and addresses, without ports, not ${JSON.stringify(wrong)}`);
  if (hosts.length > HOSTS_MAX) throw new UsageError(`${flag} takes at most ${HOSTS_MAX} names`);
  return hosts;
}

function isName(host: string): boolean {
  return host.length <= 253 && /^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(host);
}

function notEmpty(flag: string, text: string): string {
  if (text === "") throw new UsageError(`${flag} takes a directory`);
  return text;
}
