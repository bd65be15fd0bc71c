// What a registered site may send without ending the server that it sends to: the process lives on, and what it shows can still be asked for.

import { afterAll, beforeAll, expect, it } from "vitest";
import { lineIdOf, toBase64 } from "../../src/core/mesh/proof/index.ts";
import { possessionText } from "../../src/core/mesh/registry/index.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { waitFor } from "../servers/index.ts";
import { Stranger } from "./test-hostile.ts";
import { SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

let hub: TestSite;
let evil: Stranger;

beforeAll(async () => {
  hub = await TestSite.start({ id: "hub", children: ["evil", "later"] });
  await waitFor("the hub to have a line", async () => (await hub.ownLine()) !== "", SPREAD_MS);
  evil = new Stranger("evil", hub.node);
  expect((await evil.register("hub")).status).toBe(200);
}, SITES_START_MS);

afterAll(() => hub?.end(), 60_000);

/** After what was begun by the last request had its turns. */
async function lives(): Promise<void> {
  await new Promise((resume) => setTimeout(resume, 500));
  const { status } = await hub.node.call("/v1/mesh/sites", { key: "key-of-the-site-evil" });
  expect(status).toBe(200);
}

it("a head of a line in this site's own name that it does not have, as after it was founded anew", async () => {
  // Nobody has to sign it: any registered site can write it.
  const note = evil.line.sign({
    line: `hub.${"0".repeat(32)}`,
    size: 3,
    root: "0".repeat(64),
    withheld: { after: 3, hash: "0".repeat(64) },
  });
  expect((await evil.show(note)).status).toBe(200);
  await lives();
});

it("a page of a line of a second generation, as a site that was recovered registers it", async () => {
  const later = new Stranger("later", hub.node);
  const ring = { ...later.ring, generation: 2 };
  const [line, id, url] = [lineIdOf(ring, systemDigest), "later", "http://127.0.0.1:9"];
  const signature = toBase64(later.signer.sign(possessionText({ id, url, receiver: "hub" })));
  const proof = { key: toBase64(later.signer.publicKey), signature };
  const body = { id, url, name: id, metadata: { line, ring, proof } };
  expect((await later.call("/api/controllers/register", body)).status).toBe(200);
  await later.send({ line, after: 0, items: ["{}"], checkpoint: "" }).catch(() => undefined);
  await lives();
});

it("a page that is nothing spoils no other", async () => {
  evil.line.writeMany(2);
  const stream = evil.call("/v1/mesh/stream", { controller: "evil", heads: [] }).catch(() => undefined);
  await new Promise((resume) => setTimeout(resume, 500));
  expect(await evil.send(null, evil.line.page(0, 2))).toMatchObject([{ error: "EVENT_INVALID" }, { accepted: 2 }]);
  // And wishes for lines that nobody has: what links there are can be asked for all the same.
  const graft = [{ line: `nobody.${"0".repeat(32)}`, after: 0 }];
  expect((await evil.call("/api/events/broadcast", { controller: "evil", graft })).status).toBe(200);
  await lives();
  void stream;
});

it("a question for a proof from a later size to an earlier one, at any node", async () => {
  if (evil.line.size === 0) evil.line.writeMany(2);
  await evil.send(evil.line.page(0, 2));
  const { line } = evil.line;
  const asked = await hub.node.call(`/v1/mesh/consistency?line=${line}&from=2&to=1`, { key: "key-of-the-site-evil" });
  await lives();
  expect(asked.status).toBe(400);
});

it("heads count too: each costs a signature", async () => {
  const heads = Array.from({ length: 2_500 }, () => evil.line.head());
  const answers = await Promise.all(Array.from({ length: 6 }, () => evil.show(...heads)));
  expect(answers.map(({ status }) => status)).toContain(429);
  await lives();
});
