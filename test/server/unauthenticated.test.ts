// A node whose certificates the others do not accept lives: it is shown as unauthenticated, with the reason, by the command, the
// API and an alert, and not as down; also where so many are that nobody leads.

import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tenure, tenureJson } from "../cli/test-tenure.ts";
import {
  CALM_ELECTION,
  OPERATOR_KEY as key,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";

interface Status {
  readonly leader: string | null;
  readonly members: readonly {
    readonly node_id: string;
    readonly health: string;
    readonly error: string | null;
    readonly refusal: string | null;
  }[];
}

function status(cluster: TenureCluster): Promise<Status> {
  const ca = join(cluster.authority, "ca.crt");
  return tenureJson<Status>("cluster", "status", "--url", cluster.urls.join(","), "--key", key, "--ca", ca);
}

/** What a rollover in the wrong order leaves: its certificate and its trust are of another authority alone. */
async function strand(cluster: TenureCluster, node: TenureNode): Promise<void> {
  await node.kill9();
  const other = join(cluster.directory, `other-${node.id}`);
  expect(await tenure("cert", "init", "--dir", join(other, "ca"))).toMatchObject({ code: 0 });
  const issue = [
    "cert",
    "issue",
    "--dir",
    join(other, "ca"),
    "--out",
    other,
    "--node-id",
    node.id,
    "--host",
    "127.0.0.1",
  ];
  expect(await tenure(...issue)).toMatchObject({ code: 0 });
  const files = { cert_file: join(other, `${node.id}.crt`), key_file: join(other, `${node.id}.key`) };
  const ca = join(other, "ca.crt");
  node.configure({
    peer: { ...node.config.peer, tls: { ...files, ca_file: ca } },
    api: { ...node.config.api, tls: { ...files, client_ca_file: ca } },
  });
  node.start();
}

function healthOf({ members }: Status): Record<string, string> {
  return Object.fromEntries(members.map((one) => [one.node_id, one.health]));
}

test("a node that is refused is unauthenticated, with the reason, and not down", { timeout: 240_000 }, async () => {
  const cluster = await startTenureCluster({ tls: true, election: CALM_ELECTION });
  onTestFinished(() => cluster.end());
  const leader = cluster.node(await cluster.leader());
  const [one, two] = cluster.nodes.filter((node) => node !== leader);
  await strand(cluster, one!);
  let seen: Status | undefined;
  const isSeen = (want: Record<string, string>): Promise<void> =>
    waitFor(`the health ${JSON.stringify(want)}`, async () => {
      seen = await status(cluster);
      return JSON.stringify(healthOf(seen)) === JSON.stringify(want);
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${JSON.stringify(seen)}`);
    });
  const expected = Object.fromEntries(cluster.nodes.map(({ id }) => [id, id === one!.id ? "unauthenticated" : "ok"]));
  await isSeen(expected);
  const row = seen!.members.find(({ node_id }) => node_id === one!.id);
  expect(row?.refusal).toMatch(/certificate is not trusted here|does not trust this node's certificate/);
  await waitFor("the alert", async () => {
    const view = await leader.view();
    return view?.alerts.some((alert) => alert.name === "peer_unauthenticated" && alert.node_id === one!.id) === true;
  });
  const flags = ["--url", cluster.urls.join(","), "--key", key, "--ca", join(cluster.authority, "ca.crt")];
  const { stdout } = await tenure("cluster", "status", ...flags);
  expect(stdout).toContain(`${one!.id} is not accepted by other nodes, or does not accept them: `);
  expect(stdout).toContain(`${one!.id} is reached and not authenticated at ${one!.url}: `);
  expect(stdout).not.toMatch(/ down /);

  // Nobody leads any more: two of three are strangers to the third and to each other.
  await strand(cluster, two!);
  await waitFor("nobody to lead", async () => (await status(cluster)).leader === null);
  await isSeen({ ...expected, [two!.id]: "unauthenticated" });
  // Down is down.
  await one!.kill9();
  await isSeen({ ...expected, [one!.id]: "down", [two!.id]: "unauthenticated" });
});
