// The units of deploy/systemd, started by systemd on a machine of their own (test-machine.ts), by the commands of docs/deploy.md: a node
// and a command that leads, in their sandboxes, through a reload, a kill, a wrong configuration and a stop. The agent and the backup take
// their keys by LoadCredential, which gives no file to any service on such a machine: backup.test.ts runs their command lines.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf } from "../runbooks/documents.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { Machine, whyNoMachine } from "./test-machine.ts";

const missing = whyNoMachine();
if (missing !== undefined) console.log(`the units are not started: ${missing}`);

/** The blocks of shell below a heading of docs/deploy.md, as scripts. */
function shellOf(heading: string): string[] {
  const [, text = ""] = readFileSync("docs/deploy.md", "utf8").split(`\n## ${heading}\n`);
  const blocks = blocksOf(text.split("\n## ")[0]!);
  return blocks.filter(({ language }) => language === "sh").map(({ lines }) => lines.join("\n"));
}

describe.skipIf(missing !== undefined)("on a machine with systemd", () => {
  let directory: string;
  let machine: Machine;
  let url: string;
  let settings: string;

  /** Where the reader of docs/deploy.md is: the package, deploy/, tenure.toml and the certificates are there. */
  const HERE = "/srv";
  const run = (script: string): string => {
    const { status, stdout, stderr } = machine.run(script, HERE);
    expect(status, `${script}\n${stdout}${stderr}`).toBe(0);
    return stdout;
  };
  const as = (role: string, script: string): string =>
    run(`export TENURE_SERVERS_CERT_FILE=me/${role}.crt TENURE_SERVERS_KEY_FILE=me/${role}.key ${settings}\n${script}`);
  const shown = (unit: string): string => run(`systemctl show -p ActiveState,Result,ExecMainStatus,NRestarts ${unit}`);
  const isWhole = (): boolean => {
    const script = `export TENURE_SERVERS_CERT_FILE=me/operator-me.crt TENURE_SERVERS_KEY_FILE=me/operator-me.key ${settings}`;
    return machine.run(`${script}\ntenure cluster status`, HERE).status === 0;
  };

  beforeAll(async () => {
    directory = await temporaryDirectory("machine", undefined);
    machine = new Machine(directory);
    await machine.start();
    const here = join(machine.root, HERE);
    const source = join(directory, "source");
    mkdirSync(source);
    cpSync("packages/tenure-server/package.json", join(source, "package.json"));
    execFileSync("node_modules/.bin/tsc", ["-p", "tsconfig.build.json", "--noCheck", "--outDir", join(source, "dist")]);
    execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", here], { cwd: source });
    cpSync("deploy", join(here, "deploy"), { recursive: true });
    const [peer, api] = [await freePort(), await freePort()];
    url = `https://n1.example.net:${api}`;
    settings = `TENURE_URL=${url} TENURE_SERVERS_CA_FILE=me/ca.crt`;
    writeFileSync(join(machine.root, "etc/hosts"), "127.0.0.1 localhost n1.example.net\n");
    const tls = 'cert_file = "node.crt", key_file = "node.key"';
    const toml = `node_id = "set-by-TENURE_NODE_ID"
[peer]
listen = "127.0.0.1:${peer}"
tls = { ca_file = "ca.crt", ${tls} }
[api]
listen = "127.0.0.1:${api}"
tls = { ${tls}, client_ca_file = "ca.crt" }
`;
    writeFileSync(join(here, "tenure.toml"), toml);
  }, 600_000);
  afterAll(async () => {
    await machine.end();
    await removeDirectory(directory);
  });

  it("the commands of docs/deploy.md install a node and found its cluster", async () => {
    const [install = "", first = ""] = shellOf("systemd").map((text) =>
      text.replace("https://n1.example.net:7401", url),
    );
    expect(install).toContain(url);
    const [package_ = "", ...rest] = install.split("\n");
    run(package_.replace("npm install", "npm install --no-audit --no-fund"));
    run(`tenure cert init --dir ca
      tenure cert issue --dir ca --out n1 --node-id n1 --host n1.example.net
      tenure cert issue --dir ca --out me --operator me`);
    run(rest.join("\n"));
    run(first);
    await waitFor("a leader", isWhole);
    expect(run("systemctl show-environment")).not.toContain("START_FLAGS");
    expect(
      run(
        "ps -o user= -p $(systemctl show -P MainPID tenure-server) 2>/dev/null || stat -c %U /proc/$(systemctl show -P MainPID tenure-server)",
      ),
    ).toBe("tenure\n");
    expect(run("stat -c '%U %a' /var/lib/tenure")).toBe("tenure 700\n");
  }, 300_000);

  it("a reload takes new certificates, and is no restart", async () => {
    const before = run("systemctl show -P MainPID tenure-server");
    as(
      "operator-me",
      "tenure cert issue --dir ca --out n1 --node-id n1\ninstall -o root -g tenure -m 640 n1/n1.crt /etc/tenure/node.crt",
    );
    run("systemctl reload tenure-server");
    await waitFor("the log to say so", () => run("journalctl -o cat -u tenure-server").includes('"event":"reloaded"'));
    expect(run("systemctl show -P MainPID tenure-server")).toBe(before);
  });

  it("a command runs while it leads, and a stop is no failure", async () => {
    run("install -m 644 'deploy/systemd/tenure-run@.service' /etc/systemd/system/ && systemctl daemon-reload");
    run("install -d -m 750 /etc/tenure-run && install -m 644 me/ca.crt /var/lib/");
    as(
      "operator-me",
      `key=$(tenure key create --role client --name reports)
      printf "TENURE_URL=${url}\\nTENURE_SERVERS_CA_FILE=/var/lib/ca.crt\\nTENURE_API_KEY=$key\\nRUN_COMMAND=/bin/sleep 1000\\nRUN_FLAGS=--forever\\n" > /etc/tenure-run/reports.env`,
    );
    run("systemctl enable --now tenure-run@reports");
    await waitFor("it to lead", () => as("operator-me", "tenure scope list -o json").includes('"reports"'));
    await waitFor("its command", () => run("systemctl status --no-pager tenure-run@reports").includes("sleep 1000"));
    run("systemctl stop tenure-run@reports");
    expect(shown("tenure-run@reports")).toMatch(/^Result=success$/m);
  }, 120_000);

  it("a node that is killed is started again, without --bootstrap", async () => {
    run("systemctl kill --kill-who=main --signal=KILL tenure-server");
    await waitFor("another process", () => shown("tenure-server").includes("NRestarts=1"));
    await waitFor("a leader", isWhole);
  }, 120_000);

  it("a wrong configuration stops the service, and is not tried again and again", async () => {
    run("cp /etc/tenure/tenure.toml right.toml && echo 'nonsense = 1' >> /etc/tenure/tenure.toml");
    machine.run("systemctl restart tenure-server");
    await waitFor("the end", () => /^ActiveState=failed$/m.test(shown("tenure-server")));
    // Longer than RestartSec.
    run("sleep 5");
    expect(shown("tenure-server")).toMatch(/ActiveState=failed[^]*|Result=exit-code/);
    expect(shown("tenure-server")).toMatch(/^ExecMainStatus=78$/m);
    expect(run("journalctl -o cat -u tenure-server | tail -40")).toContain("nonsense");
    run("cp right.toml /etc/tenure/tenure.toml && systemctl start tenure-server");
    await waitFor("a leader", isWhole);
  }, 120_000);

  it("a stop ends it in order", () => {
    run("systemctl stop tenure-server");
    const after = shown("tenure-server");
    for (const line of ["ActiveState=inactive", "Result=success", "ExecMainStatus=0"]) expect(after).toContain(line);
  }, 120_000);
});
