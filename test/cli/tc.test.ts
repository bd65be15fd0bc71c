// `tenure tc` against the API of real coordinators, over TLS: what it shows to whom, what it changes, and how each refusal ends. The commands run in this
// process; one runs as a user has it.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { UsageError } from "../../src/cli/kit/flags.ts";
import { tc } from "../../src/cli/tc/command.ts";
import { ERRORS, TenureError } from "../../src/core/kit/errors.ts";
import { ledgerOf, rosterOf } from "../../src/core/lease/test-lease.ts";
import type { TestApi } from "../api/test-api.ts";
import { BACKEND, CLUSTER, TestCoordinators, TestIsland } from "../api/test-coordinators.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { start } from "./test-tenure.ts";

const N1 = "https://n1:1";
const SEED = "https://a-seed:1";
const OTHER = "f".repeat(64);

let island: TestIsland;
let directory: string;
/** Of a founder, which leads itself; of one that waits for a seed; of a node that is no coordinator. */
let leading: Node;
let waiting: Node;
let off: Node;

interface Node {
  readonly api: TestApi;
  readonly coordinators: TestCoordinators | undefined;
}

beforeAll(async () => {
  for (const name of Object.keys(process.env)) if (name.startsWith("TENURE_")) vi.stubEnv(name, undefined);
  directory = mkdtempSync(join(tmpdir(), "tenure-tc-"));
  vi.stubEnv("XDG_CONFIG_HOME", join(directory, "none"));
  island = await TestIsland.make();
  writeFileSync(join(directory, "ca.crt"), island.ca.cert);
  for (const name of ["operator/ops", "tc/app", "viewer/eve", "server/n1", "server/n2"]) {
    const { cert, key } = await island.pair(name);
    writeFileSync(fileOf(name, "crt"), cert);
    writeFileSync(fileOf(name, "key"), key);
  }
  [leading, waiting, off] = [
    await serving(new TestCoordinators({})),
    await serving(new TestCoordinators({ seeds: [N1, SEED] })),
    await serving(undefined),
  ];
  await waitFor("a leader", () => leading.coordinators!.coordinator.leads !== null);
});

afterAll(async () => {
  vi.unstubAllEnvs();
  for (const { api, coordinators } of [leading, waiting, off]) {
    await coordinators?.coordinator.stop();
    await api[Symbol.asyncDispose]();
  }
  rmSync(directory, { recursive: true });
});

async function serving(coordinators: TestCoordinators | undefined): Promise<Node> {
  return { api: await island.start(coordinators, { limits: { adminPerWindow: 10_000 } }), coordinators };
}

function fileOf(name: string, ending: "crt" | "key"): string {
  return join(directory, `${name.replace("/", "-")}.${ending}`);
}

/** As whom: by the certificate `kind/name`, or by the key of a role. */
type As = { readonly cert: string } | { readonly key: string };
const OPERATOR = { cert: "operator/ops" };
const OWN = { cert: "server/n1" };

function argsOf({ api }: Pick<Node, "api">, as: As, words: readonly string[], before = ""): string[] {
  const shown =
    "key" in as
      ? ["--key", `${as.key}-key`]
      : ["--cert", fileOf(as.cert, "crt"), "--client-key", fileOf(as.cert, "key")];
  return [...words, "--url", `${before}https://127.0.0.1:${api.port}`, "--ca", join(directory, "ca.crt"), ...shown];
}

interface Ended {
  readonly code: number;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
}

/** As `tenure tc` would end: its exit code, and what it says. */
async function run(node: Node, as: As, ...words: readonly string[]): Promise<Ended> {
  let text = "";
  const stdout = vi.spyOn(process.stdout, "write").mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  try {
    const code = await tc(argsOf(node, as, words));
    return { code, text, json: text.startsWith("{") ? (JSON.parse(text) as Ended["json"]) : {} };
  } catch (error) {
    if (error instanceof UsageError) return { code: error.exitCode, text: error.message, json: {} };
    if (!TenureError.is(error)) throw error;
    return { code: ERRORS[error.code].exit, text: error.message, json: { code: error.code } };
  } finally {
    stdout.mockRestore();
  }
}

const asJson = (node: Node, as: As, ...words: readonly string[]): Promise<Ended> =>
  run(node, as, ...words, "-o", "json");

/** The first cells of the table below a heading of docs/reference/cli.md. */
function documented(heading: string): string[] {
  const [, rest = ""] = readFileSync("docs/reference/cli.md", "utf8").split(`### \`${heading}\`\n`);
  return [...rest.split("\n#", 1)[0]!.matchAll(/^\| `([^`]+)`/gm)].map(([, field]) => field!).toSorted();
}

function fieldsOf(value: unknown, prefix = ""): string[] {
  if (Array.isArray(value))
    return value.length === 0 ? [`${prefix}[]`] : value.flatMap((one) => fieldsOf(one, `${prefix}[]`));
  if (typeof value !== "object" || value === null) return [prefix];
  return Object.entries(value).flatMap(([name, inner]) => fieldsOf(inner, prefix === "" ? name : `${prefix}.${name}`));
}

describe("what is shown", () => {
  it("who leads, in which term; and of the node that answers who it is", async () => {
    const { code, json } = await asJson(leading, OPERATOR, "leader");
    const term = leading.coordinators!.coordinator.leads;
    expect(code).toBe(0);
    expect(json).toEqual({
      leader_id: "n1",
      leader_incarnation: "a1",
      leader_endpoint: N1,
      term,
      expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
      self: {
        identity: "n1",
        incarnation: "a1",
        tc_cluster_id: CLUSTER,
        backend_hash: BACKEND,
        term,
        roster: { term, version: expect.any(Number) },
        leaving: false,
        waits_for: [],
      },
    });
    const { text } = await run(leading, OPERATOR, "leader");
    expect(text).toMatch(/^leader +n1@a1 at https:\/\/n1:1$/m);
    expect(text).toMatch(/^this node +n1@a1$/m);
  });

  it("that nobody leads, and for whom the node waits: exit 69", async () => {
    const { code, json } = await asJson(waiting, OPERATOR, "leader");
    expect(code).toBe(69);
    expect(json).toMatchObject({
      leader_id: null,
      term: null,
      expires_at: null,
      self: { tc_cluster_id: null, waits_for: [SEED] },
    });
    const { text } = await run(waiting, OPERATOR, "leader");
    expect(text).toMatch(/^leader +nobody/m);
    expect(text).toMatch(/^waits for +https:\/\/a-seed:1 \(or tenure tc found\)$/m);
  });

  it("members, voters, and how many a leader needs", async () => {
    const { json } = await asJson(leading, OPERATOR, "list");
    expect(json).toMatchObject({
      endpoints: [N1],
      updated_at: expect.stringMatching(/Z$/),
      voters: [{ identity: "n1", incarnation: "a1", endpoint: N1, state: "leads" }],
      quorum: 1,
      roster: { version: expect.any(Number) },
    });
    const { text } = await run(leading, OPERATOR, "list");
    expect(text).toMatch(/^https:\/\/n1:1 +n1@a1 +leads +yes$/m);
    expect(text).toMatch(/^a leader needs 1 of 1 voters \(roster of term \d+, version \d+\)$/m);
    const none = await run(waiting, OPERATOR, "list");
    expect(none.text).toMatch(/^https:\/\/n1:1 +- +- +yes\nno roster: /m);
  });

  it("of a node that does not lead: whom to ask for the states", async () => {
    const follower = await serving(new TestCoordinators({ ledger: ledgerOf(rosterOf(1, 1, "n1@a1", "n2@a1")) }));
    onTestFinished(async () => {
      await follower.coordinators!.coordinator.stop();
      await follower.api[Symbol.asyncDispose]();
    });
    const { text } = await run(follower, OPERATOR, "list");
    expect(text).toMatch(/ n2@a1 +unknown +no$/m);
    expect(text).toContain("STATE is what the leader knows: ask it (`tenure tc leader` names it)\n");
    expect((await run(leading, OPERATOR, "list")).text).not.toContain("STATE is");
  });

  it.each(["leader", "list", "rm list"])(
    "%s: the same by a key, by each certificate, and as documented",
    async (verb) => {
      const words = verb.split(" ");
      // Leases are renewed between two questions.
      const seen = async (node: Node, as: As): Promise<object> => {
        const { json } = await asJson(node, as, ...words);
        const times = ["expires_at", "updated_at"].map((name) => [name, typeof json[name]] as const);
        return { ...json, ...Object.fromEntries(times) };
      };
      for (const node of [leading, waiting]) {
        const first = await seen(node, OPERATOR);
        expect(Object.keys(first).length).toBeGreaterThan(1);
        for (const as of [{ key: "viewer" }, { cert: "viewer/eve" }, { cert: "tc/app" }, { cert: "server/n2" }]) {
          expect(await seen(node, as)).toEqual(first);
        }
      }
    },
  );

  it("as a user has it, and of a node that is none: exit 69, and what to do", async () => {
    const user = await start(["tc", ...argsOf(leading, OPERATOR, ["list", "-o", "json"])]).ended;
    expect({ code: user.code, stderr: user.stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(user.stdout)).toMatchObject({ endpoints: [N1], quorum: 1 });
    for (const as of [OPERATOR, { key: "viewer" }]) {
      const { code, json, text } = await run(off, as, "list");
      expect([code, json["code"], text]).toEqual([69, "tc_unavailable", expect.stringMatching(/\[tc\] join/)]);
    }
    const nobody = await start(["tc", "leader", "--url", `http://127.0.0.1:${await freePort()}`]).ended;
    expect([nobody.code, nobody.stderr]).toEqual([69, expect.stringContaining("connection refused")]);
  });
});

describe("the registry", () => {
  it("an island is registered and removed by any node's certificate, and shown", async () => {
    const registered = await asJson(leading, { cert: "server/n2" }, "rm", "register", OTHER, "https://rm:443/");
    expect(registered).toMatchObject({ code: 0, json: { backend_hash: OTHER, endpoints: ["https://rm"] } });
    const { json } = await asJson(leading, OPERATOR, "rm", "list");
    expect(json).toMatchObject({ backends: [{ backend_hash: OTHER, endpoints: ["https://rm"] }] });
    expect([...new Set(fieldsOf(json))].toSorted()).toEqual(documented("tenure tc rm list -o json"));
    expect((await run(leading, { key: "viewer" }, "rm", "list")).text).toMatch(
      new RegExp(`^${OTHER} +https://rm$`, "m"),
    );
    const removed = await run(leading, OWN, "rm", "unregister", OTHER, "https://rm");
    expect(removed).toMatchObject({
      code: 0,
      text: "https://rm is unregistered; the island is now reached at no URL\n",
    });
    expect((await run(leading, OPERATOR, "rm", "list")).text).toBe("no island is registered\n");
    expect(await run(leading, OWN, "rm", "unregister", OTHER, "https://rm")).toMatchObject({
      code: 0,
      text: "https://rm was not registered for this island; the island is now reached at no URL\n",
    });
  });

  it("at the next URL where nobody listens at the first", async () => {
    const dead = `https://127.0.0.1:${await freePort()},`;
    const words = ["rm", "unregister", OTHER, "https://rm", "-o", "json"];
    const { code, stdout } = await start(["tc", ...argsOf(leading, OWN, words, dead)]).ended;
    expect([code, JSON.parse(stdout)]).toEqual([0, { backend_hash: OTHER, endpoints: [] }]);
    const nobody = await start(["tc", ...argsOf({ api: { port: await freePort() } as TestApi }, OWN, words, dead)])
      .ended;
    expect([nobody.code, nobody.stderr.match(/connection refused/g)]).toEqual([
      69,
      ["connection refused", "connection refused"],
    ]);
  });

  it("not by a key or an operator: exit 77; not where nobody leads: exit 69", async () => {
    for (const as of [{ key: "operator" }, OPERATOR]) {
      expect((await run(leading, as, "rm", "register", OTHER, "https://rm")).code).toBe(77);
    }
    const { code, json } = await run(waiting, OWN, "rm", "register", OTHER, "https://rm");
    expect([code, json["code"]]).toEqual([69, "tc_not_leader"]);
  });
});

describe("the documented fields", () => {
  it("of list and leader are those that are shown", async () => {
    for (const verb of ["list", "leader"]) {
      const { json } = await asJson(leading, OPERATOR, verb);
      expect([...new Set(fieldsOf(json))].toSorted()).toEqual(documented(`tenure tc ${verb} -o json`));
    }
  });
});

describe("leave and announce", () => {
  it("take a node out, until it is announced again", async () => {
    const left = await asJson(waiting, OWN, "leave");
    expect(left).toMatchObject({ code: 0, json: { identity: "n1", endpoints: [] } });
    const gone = await run(waiting, OPERATOR, "leader");
    expect([gone.code, gone.json["code"]]).toEqual([69, "tc_unavailable"]);
    const back = await run(waiting, OWN, "announce");
    expect(back).toEqual({
      code: 0,
      text: "n1 takes part again, and announces itself. Members: https://n1:1\n",
      json: {},
    });
    expect((await asJson(waiting, OPERATOR, "list")).json).toMatchObject({ endpoints: [N1] });
  });

  it("a node that is the only voter stays: exit 69, and why", async () => {
    const { code, json, text } = await run(leading, OWN, "leave");
    expect([code, json["code"], text]).toEqual([69, "tc_cluster_unavailable", expect.stringMatching(/only voter/)]);
    expect(leading.coordinators!.coordinator.leads).not.toBeNull();
  });

  it.each(["leave", "announce"])(
    "%s: only by the node's own certificate, and nothing is done by another one",
    async (verb) => {
      const other = await run(waiting, { cert: "server/n2" }, verb);
      expect([other.code, other.text]).toEqual([
        77,
        expect.stringMatching(/of the node n2, and n1 answers at .*nothing was done/),
      ]);
      const operator = await run(waiting, OPERATOR, verb);
      expect([operator.code, operator.text]).toEqual([64, expect.stringMatching(/this one is of the operator ops/)]);
      const key = await run(waiting, { key: "operator" }, verb);
      expect([key.code, key.text]).toEqual([64, expect.stringMatching(/none is shown/)]);
      expect((await asJson(waiting, OPERATOR, "list")).json).toMatchObject({ endpoints: [N1] });
    },
  );
});
