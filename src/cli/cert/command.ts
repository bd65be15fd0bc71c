// `tenure cert init|issue|show`: the cluster's own authority, and certificates for its nodes, operators and programs. Only
// files are read and written; only `revoke` and `revoked` (revoke.ts) ask the cluster.

import { CERT } from "./help.ts";
import { chmod, readFile } from "node:fs/promises";
import { isIP, SocketAddress } from "node:net";
import { resolve } from "node:path";
import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { formatSpiffeId } from "../../core/kit/spiffe.ts";
import {
  CA_NAME,
  createCa,
  inspect,
  type Inspected,
  issue,
  type KeyPair,
  KeyStore,
  newNodeId,
  ownPair,
  type Trusted,
} from "../../drivers/pki/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { type CertFlags, readCertFlags } from "./flags.ts";
import { UsageError } from "../kit/flags.ts";
import { columns, json, printable } from "../kit/output.ts";
import { HOSTS_MAX } from "../limits.ts";
import { printed } from "../kit/print.ts";

type Flags<Verb extends CertFlags["verb"]> = Extract<CertFlags, { verb: Verb }>;

export async function cert(args: readonly string[]): Promise<number> {
  const flags = readCertFlags(args);
  if (flags === "help") return printed(CERT.help);
  switch (flags.verb) {
    case "init":
      return await init(flags);
    case "issue":
      return await issueOne(flags);
    case "show":
      return await show(flags);
    case "revoke":
      return await (await import("./revoke.ts")).revoke(flags.file, flags.connection);
    case "revoked":
      return await (await import("./revoke.ts")).revoked(flags.connection);
    default:
      return assertNever(flags, "cert");
  }
}

async function init({ dir, trustDomain, days, force, output }: Flags<"init">): Promise<number> {
  const store = new KeyStore(dir);
  if (!force && (await store.key(CA_NAME)) !== null) {
    throw new TenureError(
      "CONFIG_INVALID",
      `there is an authority in ${resolve(dir)} already. A new one would make every certificate that it signed worthless; give another --dir, or --force.`,
    );
  }
  const nowMs = systemClock.wallMs();
  const files = await store.save(CA_NAME, await createCa({ trustDomain, days, nowMs }), force);
  const [made] = inspect(await readFile(files.certFile, "utf8"), nowMs);
  const object = {
    trust_domain: trustDomain,
    cert_file: files.certFile,
    key_file: files.keyFile,
    not_after: made!.notAfter.toISOString(),
    fingerprint: made!.fingerprint,
  };
  const text = [
    `${files.certFile}  the authority of ${trustDomain}, valid until ${object.not_after}; give it to every node`,
    `${files.keyFile}  its key; keep it away from the nodes: whoever has it can be anybody`,
    `next: tenure cert issue --dir ${dir} --out ${dir}/n1 --node-id n1 --host n1.example.net, for each node (--host: what clients call it)`,
  ];
  return printed(output === "json" ? json(object) : `${text.join("\n")}\n`);
}

async function issueOne(flags: Flags<"issue">): Promise<number> {
  const { dir, out, kind, days, force, output } = flags;
  const ca = await authorityIn(dir);
  const nowMs = systemClock.wallMs();
  const store = new KeyStore(out);
  const name = flags.name ?? (await nodeIdFor(store, nowMs));
  const identity = { trustDomain: trustDomainOf(ca.cert, nowMs), kind, name };
  const fileName = kind === "server" ? name : `${kind}-${name}`;
  if (fileName === CA_NAME)
    throw new UsageError(`${CA_NAME} is the name of the authority's files; choose another node id`);
  const present = force ? null : await store.key(fileName);
  const hosts = kind === "server" ? keptHosts(await store.hosts(fileName, nowMs), flags) : [];
  const pair = await issue({ ca, identity, hosts, days, nowMs, key: present ?? undefined });
  // First: where ca.crt is damaged, nothing is issued that would not be trusted.
  const trusted = await store.trust(ca.cert, nowMs);
  const files = await store.save(fileName, pair, force);
  await chmod(files.keyFile, 0o600);
  const [made] = inspect(pair.cert, nowMs);
  const object = {
    kind,
    name,
    spiffe_id: formatSpiffeId(identity),
    cert_file: files.certFile,
    key_file: files.keyFile,
    ca_file: trusted.certFile,
    authorities: trusted.authorities,
    hosts,
    not_after: made!.notAfter.toISOString(),
    fingerprint: made!.fingerprint,
    key: present === null ? "new" : "kept",
  };
  const rows = [
    [files.certFile, `${object.spiffe_id}, valid until ${object.not_after}`],
    [files.keyFile, present === null ? "its key, new" : "its key, the same as before"],
    [trusted.certFile, trustText(trusted)],
    ...(kind === "server" ? [["names", hostsText(hosts)]] : []),
  ];
  return printed(output === "json" ? json(object) : columns(rows));
}

async function authorityIn(dir: string): Promise<KeyPair> {
  const ca = await new KeyStore(dir).pair(CA_NAME);
  if (ca !== null) return ownPair(ca);
  throw new TenureError(
    "CONFIG_INVALID",
    `there is no authority in ${resolve(dir)}. Make one: tenure cert init --dir ${dir}`,
  );
}

/** A node is reached under the names of before, unless somebody says otherwise. */
function keptHosts(before: readonly string[], { hosts, dropped }: Flags<"issue">): readonly string[] {
  const unwanted = new Set(dropped.map(sameHost));
  const all = [...new Set([...before, ...hosts].map(sameHost))].filter((host) => !unwanted.has(host));
  if (all.length <= HOSTS_MAX) return all;
  throw new UsageError(
    `${all.length} names: a certificate takes at most ${HOSTS_MAX}. Those of before are kept; leave some out with --drop-host`,
  );
}

/** One text for each name and address: certificates are read with all digits of an IPv6 address. */
function sameHost(host: string): string {
  return isIP(host) === 6 ? new SocketAddress({ address: host, family: "ipv6" }).address : host.toLowerCase();
}

function trustText({ authorities, isAdded }: Trusted): string {
  if (authorities === 1) return "the authority that signed it";
  return `${authorities} authorities; ${isAdded ? "the one that signed it was added" : "the one that signed it is among them"}`;
}

function hostsText(hosts: readonly string[]): string {
  return hosts.length === 0
    ? "none: clients that call its API check for the name that they call; give --host"
    : hosts.join(", ");
}

/** A node that gets a new certificate stays who it was. */
async function nodeIdFor(store: KeyStore, nowMs: number): Promise<string> {
  const [present, ...others] = await store.nodeIds(nowMs);
  if (present === undefined) return newNodeId();
  if (others.length === 0) return present;
  const listed = [present, ...others].join(", ");
  throw new UsageError(
    `${store.directory} holds certificates of several nodes (${listed}); say which with --node-id, or give another --out`,
  );
}

/** The authority's organisation, which `init` has written. */
function trustDomainOf(caCertificate: string, nowMs: number): string {
  const [authority] = inspect(caCertificate, nowMs);
  const [, trustDomain] = /(?:^|, )O=([^,]+)(?:,|$)/.exec(authority?.subject ?? "") ?? [];
  if (trustDomain !== undefined && /^[a-z0-9][a-z0-9.-]*$/.test(trustDomain)) return trustDomain;
  throw new TenureError(
    "CERTIFICATE_INVALID",
    "the authority's certificate names no trust domain (its organisation, O=). Make one with tenure cert init.",
  );
}

async function show({ files, output }: Flags<"show">): Promise<number> {
  const nowMs = systemClock.wallMs();
  const found: { readonly file: string; readonly certificate: Inspected }[] = [];
  for (const file of files) {
    for (const certificate of await inspectFile(file, nowMs)) found.push({ file, certificate });
  }
  const objects = found.map(({ file, certificate }) => certificateObject(file, certificate));
  const tables = found.map(({ file, certificate }) => certificateTable(file, certificate)).join("\n");
  return printed(output === "json" ? json({ certificates: objects }) : tables);
}

async function inspectFile(file: string, nowMs: number): Promise<readonly Inspected[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such file" : message;
    throw new TenureError("CONFIG_INVALID", `${file} can't be read: ${why}.`, { cause: error });
  }
  try {
    return inspect(text, nowMs);
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    throw new TenureError(error.code, `${file}: ${error.message}`, { cause: error });
  }
}

function certificateObject(file: string, certificate: Inspected): object {
  return {
    file,
    subject: certificate.subject,
    spiffe_id: certificate.spiffeId,
    node_id: certificate.nodeId,
    hosts: certificate.hosts,
    not_before: certificate.notBefore.toISOString(),
    not_after: certificate.notAfter.toISOString(),
    issuer: certificate.issuer,
    fingerprint: certificate.fingerprint,
    is_ca: certificate.isCa,
    problems: certificate.problems,
  };
}

function certificateTable(file: string, certificate: Inspected): string {
  const identity = certificate.isCa ? "an authority" : (certificate.spiffeId ?? "none");
  return columns(
    [
      ["file", file],
      ["identity", identity],
      ["node id", certificate.nodeId ?? "-"],
      ["hosts", certificate.hosts.length === 0 ? "-" : certificate.hosts.join(", ")],
      ["subject", certificate.subject],
      ["issuer", certificate.issuer],
      ["valid", `${certificate.notBefore.toISOString()} to ${certificate.notAfter.toISOString()}`],
      ["sha256", certificate.fingerprint],
      ...certificate.problems.map((problem) => ["WARNING", problem]),
    ].map((row) => row.map(printable)),
  );
}
