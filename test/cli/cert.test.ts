// `tenure cert` as a process: an authority, certificates that OpenSSL and Node accept, and nothing overwritten by accident.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { IDENTITY_KINDS } from "../../src/core/kit/spiffe.ts";
import { createCa, inspect, issue } from "../../src/drivers/pki/index.ts";
import { TestAuthority } from "../wire/test-certificates.ts";
import { atTheEnd, tenure, tenureJson } from "./test-tenure.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

interface Made {
  readonly name: string;
  readonly spiffe_id: string;
  readonly cert_file: string;
  readonly key_file: string;
  readonly ca_file: string;
  readonly not_after: string;
  readonly key: "new" | "kept";
}

interface Shown {
  readonly certificates: readonly {
    readonly file: string;
    readonly spiffe_id: string | null;
    readonly node_id: string | null;
    readonly is_ca: boolean;
    readonly hosts: readonly string[];
    readonly problems: readonly string[];
  }[];
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "tenure-cert-"));
  atTheEnd(async () => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function authority(...flags: readonly string[]): Promise<string> {
  const dir = join(directory(), "ca");
  expect(await tenure("cert", "init", "--dir", dir, ...flags)).toMatchObject({ code: 0, stderr: "" });
  return dir;
}

function read(file: string): X509Certificate {
  return new X509Certificate(readFileSync(file));
}

it.concurrent("init makes an authority for ten years, whose key is the owner's alone", async () => {
  const dir = await authority("--trust-domain", "prod.example");
  expect(readdirSync(dir).toSorted()).toEqual(["ca.crt", "ca.key"]);
  expect(statSync(join(dir, "ca.key")).mode & 0o777).toBe(0o600);
  expect(statSync(dir).mode & 0o077).toBe(0);
  const certificate = read(join(dir, "ca.crt"));
  expect(certificate.ca).toBe(true);
  expect(certificate.verify(certificate.publicKey)).toBe(true);
  expect(certificate.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
  expect((certificate.validToDate.getTime() - Date.now()) / DAY_MS).toBeCloseTo(3_650, 0);
});

it.runIf(process.platform === "linux").concurrent(
  "a directory that can't be made: exit 78 at once, with the reason",
  async () => {
    const refused = { code: 78, stdout: "", stderr: expect.stringContaining("/proc/tenure can't be used (ENOENT)") };
    expect(await tenure("cert", "init", "--dir", "/proc/tenure")).toMatchObject(refused);
    const issued = await tenure(
      "cert",
      "issue",
      "--dir",
      await authority(),
      "--out",
      "/proc/tenure",
      "--node-id",
      "n1",
    );
    expect(issued).toMatchObject(refused);
  },
);

it.concurrent("init does not replace an authority, unless it is forced to", async () => {
  const dir = await authority();
  const key = readFileSync(join(dir, "ca.key"), "utf8");
  const said = await tenure("cert", "init", "--dir", dir);
  expect(said).toMatchObject({ code: 78, stdout: "" });
  expect(said.stderr).toContain("there is an authority in");
  expect(readFileSync(join(dir, "ca.key"), "utf8")).toBe(key);
  expect((await tenure("cert", "init", "--dir", dir, "--force")).code).toBe(0);
  expect(readFileSync(join(dir, "ca.key"), "utf8")).not.toBe(key);
});

it.concurrent("issue makes a node's certificate: one URI, both usages, the API's names, one year", async () => {
  const dir = await authority("--trust-domain", "prod.example");
  const out = join(directory(), "n1");
  const made = await tenureJson<Made>(
    "cert",
    "issue",
    "--dir",
    dir,
    "--out",
    out,
    "--node-id",
    "n1",
    "--host",
    "n1.example,10.0.0.1",
  );
  expect(made).toMatchObject({ code: 0, name: "n1", spiffe_id: "spiffe://prod.example/server/n1", key: "new" });
  expect(readdirSync(out).toSorted()).toEqual(["ca.crt", "n1.crt", "n1.key"]);
  const certificate = read(made.cert_file);
  expect(certificate.subjectAltName).toBe("URI:spiffe://prod.example/server/n1, DNS:n1.example, IP Address:10.0.0.1");
  expect(certificate.keyUsage?.toSorted()).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  expect(certificate.ca).toBe(false);
  expect(certificate.verify(read(made.ca_file).publicKey)).toBe(true);
  expect(certificate.checkPrivateKey(createPrivateKey(readFileSync(made.key_file)))).toBe(true);
  expect(statSync(made.key_file).mode & 0o777).toBe(0o600);
  expect((certificate.validToDate.getTime() - Date.now()) / DAY_MS).toBeCloseTo(365, 0);
});

it.concurrent("a node id is made up once, and kept with its key when another certificate is issued", async () => {
  const dir = await authority();
  const out = join(directory(), "node");
  const first = await tenureJson<Made>("cert", "issue", "--dir", dir, "--out", out);
  expect(first.name).toMatch(/^n-[a-z0-9]{8}$/);
  const again = await tenureJson<Made>("cert", "issue", "--dir", dir, "--out", out, "--days", "30");
  expect(again).toMatchObject({ name: first.name, key: "kept", cert_file: first.cert_file });
  expect((Date.parse(again.not_after) - Date.now()) / DAY_MS).toBeCloseTo(30, 0);
  const forced = await tenureJson<Made>("cert", "issue", "--dir", dir, "--out", out, "--force");
  expect(forced).toMatchObject({ name: first.name, key: "new" });
  const other = await tenureJson<Made>("cert", "issue", "--dir", dir, "--out", join(directory(), "other"));
  expect(other.name).not.toBe(first.name);
  await tenure("cert", "issue", "--dir", dir, "--out", out, "--node-id", "n2");
  const unclear = await tenure("cert", "issue", "--dir", dir, "--out", out);
  expect(unclear.code).toBe(64);
  expect(unclear.stderr).toMatch(/several nodes \(.*n2\); say which with --node-id/);
});

it.concurrent("operators and programs get certificates that can't serve", async () => {
  const dir = await authority();
  const operator = await tenureJson<Made>("cert", "issue", "--dir", dir, "--operator", "alice");
  expect(operator).toMatchObject({
    spiffe_id: "spiffe://tenure/operator/alice",
    cert_file: join(dir, "operator-alice.crt"),
  });
  expect(read(operator.cert_file).keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
  const sdk = await tenureJson<Made>("cert", "issue", "--dir", dir, "--sdk", "payer");
  expect(sdk.spiffe_id).toBe("spiffe://tenure/sdk/payer");
  for (const kind of IDENTITY_KINDS.filter((one) => one !== "server")) {
    const made = await tenureJson<Made>("cert", "issue", "--dir", dir, `--${kind}`, "w-1");
    expect(made).toMatchObject({ code: 0, spiffe_id: `spiffe://tenure/${kind}/w-1`, key: "new" });
    expect(made.cert_file).toBe(join(dir, `${kind}-w-1.crt`));
    expect(read(made.cert_file).subjectAltName).toBe(`URI:spiffe://tenure/${kind}/w-1`);
    expect(read(made.cert_file).keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
  }
});

it.concurrent("a transaction's client has one URI name, keeps its key, and makes no node of the directory that it is issued to", async () => {
  const dir = await authority("--trust-domain", "prod.example");
  const out = join(directory(), "node");
  const node = await tenureJson<Made>("cert", "issue", "--dir", dir, "--out", out);
  const issued = () => tenureJson<Made>("cert", "issue", "--dir", dir, "--out", out, "--tc", "orders.eu");
  expect(await issued()).toMatchObject({ spiffe_id: "spiffe://prod.example/tc/orders.eu", key: "new" });
  const made = await issued();
  expect(made).toMatchObject({ name: "orders.eu", key: "kept", cert_file: join(out, "tc-orders.eu.crt") });
  expect(read(made.cert_file).subjectAltName).toBe("URI:spiffe://prod.example/tc/orders.eu");
  // The node's next certificate is the same node's.
  expect(await tenureJson<Made>("cert", "issue", "--dir", dir, "--out", out)).toMatchObject({
    name: node.name,
    key: "kept",
  });
  const { certificates } = await tenureJson<Shown>("cert", "show", made.cert_file);
  expect(certificates).toMatchObject([
    { spiffe_id: "spiffe://prod.example/tc/orders.eu", node_id: null, problems: [] },
  ]);
});

it("what is no identity is told with every kind that there is", async () => {
  const { cert } = await (await TestAuthority.make()).forged(["https://example.org"]);
  const [found] = inspect(cert, Date.now());
  expect(found?.problems[0]).toBe(`its URI name is not spiffe://<trust domain>/${IDENTITY_KINDS.join("|")}/<name>`);
});

it.concurrent("show tells what is in a file, and warns of what is wrong", async () => {
  const nowMs = Date.now();
  const ca = await createCa({ trustDomain: "tenure", nowMs });
  const identity = { trustDomain: "tenure", kind: "server", name: "n1" } as const;
  const dir = directory();
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  const good = file("good.crt", (await issue({ ca, identity, nowMs, hosts: ["n1.example"] })).cert + ca.cert);
  const late = file("late.crt", (await issue({ ca, identity, nowMs, days: 3 })).cert);
  const over = file("over.crt", (await issue({ ca, identity, nowMs: nowMs - 10 * DAY_MS, days: 5 })).cert);
  const { certificates } = await tenureJson<Shown>("cert", "show", good, late, over);
  expect(certificates.map(({ file: from, node_id, is_ca, hosts }) => [from, node_id, is_ca, hosts])).toEqual([
    [good, "n1", false, ["n1.example"]],
    [good, null, true, []],
    [late, "n1", false, []],
    [over, "n1", false, []],
  ]);
  expect(certificates.map(({ problems }) => problems.join())).toEqual([
    "",
    "",
    expect.stringContaining("expires in 3 days"),
    expect.stringContaining("it has expired on"),
  ]);
  const { stdout } = await tenure("cert", "show", late);
  expect(stdout).toMatch(/^identity +spiffe:\/\/tenure\/server\/n1$/m);
  expect(stdout).toMatch(/^WARNING +it expires in 3 days/m);
});

it.concurrent.each([
  ["a key", (dir: string) => join(dir, "ca.key"), "a private key, which is never shown"],
  ["what is not there", (dir: string) => join(dir, "none.crt"), "can't be read: there is no such file"],
])("show of %s says so, with exit code 78", async (_what, file, said) => {
  const dir = await authority();
  const shown = await tenure("cert", "show", file(dir));
  expect(shown).toMatchObject({ code: 78, stdout: "" });
  expect(shown.stderr).toContain(said);
  expect(shown.stderr.trim().split("\n")).toHaveLength(1);
});

it.concurrent("show of a damaged certificate says so", async () => {
  const dir = await authority();
  const file = join(dir, "ca.crt");
  writeFileSync(file, readFileSync(file, "utf8").replace(/\n[A-Za-z0-9+/]{20}/, "\nAAAAAAAAAAAAAAAAAAAA"));
  const shown = await tenure("cert", "show", file);
  expect(shown.code).toBe(78);
  expect(shown.stderr).toContain("it is damaged");
});

it.concurrent.each([
  [["frobnicate"], "there is no"],
  [[], "say what to do"],
  [["issue", "--node-id", "N 1"], "--node-id takes up to 63"],
  [["issue", "--node-id", "ca"], "the name of the authority's files"],
  [["issue", "--operator", "a", "--sdk", "b"], "give one of --operator and --sdk"],
  [["issue", "--agent", "a", "--viewer", "b"], "give one of --agent and --viewer"],
  [["issue", "--submitter", "a b"], "--submitter takes up to 63"],
  [["issue", "--tc", "a/b"], "--tc takes up to 63"],
  [["issue", "--tc", "a", "--sdk", "b"], "give one of --sdk and --tc"],
  [["issue", "--tc", "a", "--host", "h"], "--host belongs to a node's"],
  [["issue", "--operator", "a", "--host", "h"], "--host belongs to a node's"],
  [["issue", "--host", "n1:7400"], "without ports"],
  [["issue", "--days", "0"], "--days takes a number"],
  [["issue", "--trust-domain", "x"], "--trust-domain does not belong to issue"],
  [["init", "--trust-domain", "Tenure/x"], "--trust-domain takes"],
  [["show"], "show needs a file"],
])("%j is refused in one line, and writes nothing", async (args, said) => {
  const dir = await authority();
  const before = readdirSync(dir);
  const flags = args[0] === "issue" ? ["--dir", dir] : [];
  const refused = await tenure("cert", ...args, ...flags);
  expect(refused).toMatchObject({ code: 64, stdout: "" });
  expect(refused.stderr).toContain(said);
  expect(refused.stderr.trim().split("\n")).toHaveLength(1);
  expect(readdirSync(dir)).toEqual(before);
});

it.concurrent("issue needs an authority whose key is its own", async () => {
  const missing = await tenure("cert", "issue", "--dir", directory());
  expect(missing.code).toBe(78);
  expect(missing.stderr).toContain("tenure cert init");
  const [one, other] = [await authority(), await authority()];
  writeFileSync(join(one, "ca.key"), readFileSync(join(other, "ca.key")));
  const mixed = await tenure("cert", "issue", "--dir", one, "--node-id", "n1");
  expect(mixed.code).toBe(78);
  expect(mixed.stderr).toContain("the key is another one's");
  expect(readdirSync(one).toSorted()).toEqual(["ca.crt", "ca.key"]);
});

it("a certificate never outlives its authority", async () => {
  const nowMs = Date.now();
  const ca = await createCa({ trustDomain: "tenure", days: 10, nowMs });
  const { cert } = await issue({ ca, identity: { trustDomain: "tenure", kind: "sdk", name: "a" }, days: 400, nowMs });
  expect(inspect(cert, nowMs)[0]!.notAfter).toEqual(inspect(ca.cert, nowMs)[0]!.notAfter);
});

it.concurrent("issue never takes an authority out of a ca.crt: it adds its own where that is missing", async () => {
  const [old, next] = [await authority(), await authority()];
  const out = join(directory(), "n1");
  const bundle = join(out, "ca.crt");
  const issued = (ca: string) => tenureJson<Made>("cert", "issue", "--dir", ca, "--out", out, "--node-id", "n1");
  expect(await issued(old)).toMatchObject({ code: 0, authorities: 1 });
  // As the runbook says: both, and then a certificate of the next one.
  const both = readFileSync(join(old, "ca.crt"), "utf8") + readFileSync(join(next, "ca.crt"), "utf8");
  writeFileSync(bundle, both);
  expect(await issued(next)).toMatchObject({ code: 0, authorities: 2 });
  expect(readFileSync(bundle, "utf8")).toBe(both);
  // And without that step.
  writeFileSync(bundle, readFileSync(join(old, "ca.crt")));
  expect(await issued(next)).toMatchObject({ code: 0, authorities: 2 });
  expect(inspect(readFileSync(bundle, "utf8"), Date.now()).map(({ fingerprint }) => fingerprint)).toEqual(
    [old, next].map((dir) => read(join(dir, "ca.crt")).fingerprint256),
  );
  // Where the authority's own ca.crt holds both, the one of its key signs.
  writeFileSync(join(next, "ca.crt"), both);
  const made = await issued(next);
  const [, second] = inspect(both, Date.now());
  expect(inspect(readFileSync(made.cert_file, "utf8"), Date.now())[0]?.issuer).toBe(second?.subject);
  expect(read(made.cert_file).verify(new X509Certificate(both.slice(both.lastIndexOf("-----BEGIN"))).publicKey)).toBe(
    true,
  );
});

it.concurrent("a ca.crt that is damaged is left alone, with what to do, and nothing is issued", async () => {
  const dir = await authority();
  const out = join(directory(), "n1");
  const made = await tenureJson<Made>("cert", "issue", "--dir", dir, "--out", out, "--node-id", "n1");
  const [bundle, before] = [join(out, "ca.crt"), readFileSync(made.cert_file, "utf8")];
  const good = readFileSync(bundle, "utf8");
  for (const damaged of [
    good.replace("MII", "M!I"),
    good + good.slice(0, 200),
    "hello",
    good.replace(/\n[^-]+\n/, "\nAAAA\n"),
  ]) {
    writeFileSync(bundle, damaged);
    const { code, stderr } = await tenure("cert", "issue", "--dir", dir, "--out", out, "--node-id", "n1");
    expect({ code, stderr }).toMatchObject({
      code: 78,
      stderr: expect.stringContaining("Put back a copy that is whole"),
    });
    expect(readFileSync(bundle, "utf8")).toBe(damaged);
    expect(readFileSync(made.cert_file, "utf8")).toBe(before);
  }
});

it.concurrent("a renewal keeps the names of the certificate, adds new ones, and drops those that are named", async () => {
  const dir = await authority();
  const out = join(directory(), "n1");
  const issued = (...flags: readonly string[]) =>
    tenureJson<Made & { hosts: readonly string[] }>(
      "cert",
      "issue",
      "--dir",
      dir,
      "--out",
      out,
      "--node-id",
      "n1",
      ...flags,
    );
  await issued("--host", "n1.example,10.0.0.1,::1");
  const renewed = await issued();
  expect(renewed).toMatchObject({ key: "kept", hosts: ["n1.example", "10.0.0.1", "::1"] });
  expect(read(renewed.cert_file).checkHost("n1.example")).toBe("n1.example");
  expect(await issued("--force", "--host", "new.example")).toMatchObject({
    key: "new",
    hosts: ["n1.example", "10.0.0.1", "::1", "new.example"],
  });
  expect((await issued("--drop-host", "n1.example,::1")).hosts).toEqual(["10.0.0.1", "new.example"]);
  const many = Array.from({ length: 31 }, (_, at) => `h${at}.example`).join(",");
  const { code, stderr } = await tenure("cert", "issue", "--dir", dir, "--out", out, "--node-id", "n1", "--host", many);
  expect({ code, stderr }).toMatchObject({
    code: 64,
    stderr: expect.stringContaining("leave some out with --drop-host"),
  });
  writeFileSync(renewed.cert_file, "damaged");
  const unclear = await tenure("cert", "issue", "--dir", dir, "--out", out, "--node-id", "n1");
  expect(unclear).toMatchObject({ code: 78, stderr: expect.stringContaining("give all of them with --host") });
  const { stdout } = await tenure("cert", "init", "--dir", join(directory(), "ca"));
  expect(stdout).toMatch(/next: tenure cert issue .* --node-id n1 --host n1\.example\.net/);
});
