// `tenure txn` over real HTTP, against made-up coordinators: what it sends, what it prints, and how it ends. The commands run as a user has them.

import { spawn, spawnSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Said, start } from "./test-tenure.ts";

const A = "a".repeat(64);
const B = "b".repeat(64);
const ID = "0198a1c2-0000-7000-8000-000000000001";
const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const BODY = {
  require: [{ backend_hash: A, scope: "orders", epoch: 4 }],
  participants: [
    { backend_hash: A, operations: [{ op: "value.delete", name: "v", if_version: 3 }] },
    {
      backend_hash: B,
      operations: [{ op: "job.submit", job: { kind: "move", payload: { someKey: 1 }, attempts_max: 2 } }],
    },
  ],
};
const VIEW = {
  txn_id: ID,
  state: "prepared",
  home: A,
  participants: [A, B],
  by: "mover",
  timeout_ms: 5_000,
  at_ms: 1_700_000_000_000,
  locks: ["value v"],
  results: [],
  reason: null,
  undelivered: 0,
  waits_for: [],
  settled: false,
  in_doubt: true,
};

type Reply = readonly [number, object];
/** No answer ever comes. */
const SILENCE: Reply = [0, {}];

let server: Server;
let url: string;
let directory: string;
let file: string;
let asked: { readonly call: string; readonly body: unknown }[];
let answer: (call: string, body: Record<string, unknown>) => Reply;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tenure-txn-"));
  file = join(directory, "txn.json");
  writeFileSync(file, JSON.stringify(BODY));
  server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      const call = `${request.method} ${request.url}`;
      const body = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
      if (call !== "GET /leader") asked.push({ call, body });
      const leader = { node_id: "n1", leader_id: "n1", leader_url: url, leader_address: null, term: 1 };
      const [status, said] = call === "GET /leader" ? [200, leader] : answer(call, body);
      if (status === SILENCE[0]) return;
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(said));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => void server.close(resolve));
  rmSync(directory, { recursive: true, force: true });
});

beforeEach(() => {
  asked = [];
});

function refusal(code: string, status: number): Reply {
  return [status, { error: code, message: `it is ${code}`, detail: null }];
}

/** Of util-linux. */
const SCRIPT = "script";
const hasScript = spawnSync(SCRIPT, ["-qec", "true", "/dev/null"], { stdio: "ignore" }).status === 0;

/** Typed once it is asked. */
async function atTerminal(args: readonly string[], typed: string): Promise<{ text: string; code: number | null }> {
  const command = [process.execPath, "src/cli/main.ts", "txn", ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn(SCRIPT, ["-qec", command, "/dev/null"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env["PATH"], TERM: "dumb", XDG_CONFIG_HOME: directory },
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    const wasAsked = text.includes("Type yes");
    text += piece;
    if (!wasAsked && text.includes("Type yes")) child.stdin.write(typed);
  });
  const code = await new Promise<number | null>((resolve) => void child.once("close", resolve));
  return { text: text.replaceAll(/\r?\n/g, "\n"), code };
}

function txn(args: readonly string[], input?: string): Promise<Said> {
  return start(["txn", ...args, "--url", url], {}, undefined, input).ended;
}

describe("tenure txn run", () => {
  const committed = (_: string, { txn_id }: Record<string, unknown>): Reply => {
    const participants = [
      { backend_hash: A, state: "applied", results: [{ version: 41 }] },
      { backend_hash: B, state: "pending", results: [] },
    ];
    return [200, { txn_id, state: "committed", tc_term: 5, home: A, reason: null, participants }];
  };

  it("sends the file as it is, under a new id, and prints what each island has done", async () => {
    answer = committed;
    const { code, stdout, stderr } = await txn(["run", file]);
    expect([code, stderr]).toEqual([0, ""]);
    const [{ call, body }] = asked as [{ call: string; body: { txn_id: string } }];
    expect(call).toBe("POST /v1/txn");
    expect(body).toEqual({ ...BODY, txn_id: expect.stringMatching(UUID7) as string });
    expect(stdout).toContain(`${body.txn_id} is committed, in term 5\n`);
    expect(stdout).toMatch(/applied {2}version 41\n[b]{64} {2}pending/);
  });

  it("takes stdin, an id of its own, and prints one object for programs", async () => {
    answer = committed;
    const { code, stdout } = await txn(["run", "-", "--id", ID, "-o", "json"], JSON.stringify(BODY));
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ txn_id: ID, state: "committed", tc_term: 5, home: A, reason: null });
    expect(asked).toMatchObject([{ body: { txn_id: ID } }]);
  });

  it("that was rolled back ends with 69 and says why, whatever the reason", async () => {
    for (const code of ["VERSION_CONFLICT", "txn_locked"]) {
      const reason = { code, message: "v has version 9", backend_hash: B };
      answer = (_, { txn_id }) => [
        200,
        { txn_id, state: "rolled_back", tc_term: 5, home: A, reason, participants: [] },
      ];
      const said = await txn(["run", file, "--id", ID]);
      expect([said.code, said.stdout]).toEqual([69, ""]);
      expect(said.stderr).toBe(
        `tenure: transaction ${ID} was rolled back, and nothing of it was done: ${code} at island ${B}: v has version 9.\n`,
      );
    }
    const json = await txn(["run", file, "--id", ID, "--json"]);
    expect([json.code, json.stderr]).toEqual([69, ""]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      state: "rolled_back",
      reason: { code: "txn_locked", backend_hash: B },
    });
  });

  it("whose outcome is not known ends with 75, the id, and what to do", async () => {
    let runs = 0;
    answer = () => (++runs === 1 ? refusal("OUTCOME_UNKNOWN", 503) : refusal("txn_conflict", 409));
    const said = await txn(["run", file, "--id", ID]);
    expect([said.code, said.stdout]).toEqual([75, ""]);
    expect(said.stderr).toContain(`it is not known whether transaction ${ID} is committed: it is OUTCOME_UNKNOWN.`);
    expect(said.stderr).toContain(`Run it again with --id ${ID}: that is never done twice`);
    runs = 0;
    const json = await txn(["run", file, "--id", ID, "-o", "json"]);
    expect([json.code, json.stderr]).toEqual([75, ""]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      txn_id: ID,
      state: "unknown",
      reason: { code: "OUTCOME_UNKNOWN" },
    });
  });

  it("whose id is too old is not known either, and nobody is sent back to it", async () => {
    answer = () => refusal("txn_expired", 409);
    const said = await txn(["run", file, "--id", ID]);
    expect([said.code, said.stdout]).toEqual([75, ""]);
    expect(said.stderr).toContain("is committed: it is txn_expired. This id finds it out no more: look at the values");
    const json = await txn(["run", file, "--id", ID, "-o", "json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ state: "unknown", reason: { code: "txn_expired" } });
  });

  it("that is ended by SIGINT gives the id under which it may have been committed", async () => {
    const arrived = new Promise<string>((resolve) => {
      answer = (_, { txn_id }) => {
        resolve(txn_id as string);
        return SILENCE;
      };
    });
    const run = start(["txn", "run", file, "--url", url]);
    const id = await arrived;
    run.child.kill("SIGINT");
    const said = await run.ended;
    expect([said.code, said.stdout]).toEqual([130, ""]);
    expect(said.stderr).toContain(`it is not known whether transaction ${id} is committed: `);
    expect(said.stderr).toContain(`Run it again with --id ${id}`);
  });

  it.each([
    ["invalid_participants", 400, 64],
    ["tc_client_required", 403, 77],
    ["txn_conflict", 409, 69],
    ["tc_rm_unavailable", 503, 69],
  ])("refused with %s ends with the exit code of that error", async (code, status, exit) => {
    answer = () => refusal(code, status);
    const said = await txn(["run", file]);
    expect(said).toMatchObject({ code: exit, stdout: "", stderr: `tenure: it is ${code}\n` });
  });
});

describe("tenure txn show and list", () => {
  it("show what the island knows; what it does not know is 69", async () => {
    answer = (call) => (call.includes(ID) ? [200, VIEW] : refusal("txn_not_found", 404));
    const found = await txn(["show", ID]);
    expect([found.code, found.stderr]).toEqual([0, ""]);
    expect(found.stdout).toContain("prepared, in doubt\n");
    const json = await txn(["show", ID, "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      txn_id: ID,
      state: "prepared",
      locks: ["value v"],
      in_doubt: true,
    });
    const missing = await txn(["show", ID.replace(/1$/, "2")]);
    expect(missing).toMatchObject({ code: 69, stdout: "" });
    expect(missing.stderr).toContain("this island knows no transaction");
    expect(asked[0]!.call).toBe(`GET /v1/txn/${ID}?consistency=linearizable`);
  });

  it("page by page, only those in doubt where that is asked for, and one on a line for programs", async () => {
    const other = ID.replace(/1$/, "2");
    answer = (call) =>
      call.includes("after=")
        ? [200, { transactions: [{ ...VIEW, txn_id: other }], next: null }]
        : [200, { transactions: [VIEW], next: ID }];
    const lines = await txn(["list", "--in-doubt", "-o", "jsonl"]);
    const ids = lines.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { txn_id: string }).txn_id);
    expect(ids).toEqual([ID, other]);
    expect(asked.every(({ call }) => call.includes("in_doubt=true"))).toBe(true);
    const table = await txn(["list"]);
    expect(table.stdout.split("\n")[0]).toMatch(/^ID +STATE +SINCE +HOME +BY +WAITS FOR +LOCKS$/);
    answer = () => [200, { transactions: [], next: null }];
    expect((await txn(["list", "-o", "json"])).stdout).toBe('{"transactions":[]}\n');
  });
});

describe("tenure txn replay", () => {
  it("has home asked, and ends with 75 where that is still open", async () => {
    answer = () => [200, { txn_id: ID, state: "committed" }];
    expect(await txn(["replay", ID])).toEqual({ code: 0, stdout: `${ID} is committed\n`, stderr: "" });
    answer = () => [200, { txn_id: ID, state: "prepared" }];
    const open = await txn(["replay", ID]);
    expect([open.code, open.stdout]).toEqual([75, ""]);
    expect(open.stderr).toContain("still in doubt: its home has not said what was decided");
    const json = await txn(["replay", ID, "-o", "json"]);
    expect([json.code, JSON.parse(json.stdout)]).toEqual([75, { txn_id: ID, state: "prepared", forced: false }]);
    answer = () => refusal("txn_not_found", 404);
    expect(await txn(["replay", ID])).toMatchObject({ code: 69 });
  });

  it("forces nothing without a yes, and nothing that is not prepared here", async () => {
    answer = () => [200, VIEW];
    const unasked = await txn(["replay", ID, "--force", "commit"]);
    expect(unasked).toMatchObject({ code: 64, stdout: "" });
    expect(unasked.stderr).toContain("Give --yes");
    expect(asked).toEqual([]);
    answer = () => [200, { ...VIEW, state: "committed" }];
    const decided = await txn(["replay", ID, "--force", "rollback", "--yes"]);
    expect(decided.code).toBe(69);
    expect(decided.stderr).toContain("is committed here, so there is nothing to force");
    expect(asked.map(({ call }) => call)).toEqual([`GET /v1/txn/${ID}?consistency=linearizable`]);
  });

  it.skipIf(!hasScript).each([
    ["yes", 0, `${ID} is committed here, as you have forced it`],
    ["y", 64, "nothing was done: the answer was not yes"],
  ])("asks at a terminal, and takes %j for what it is", async (typed, exit, said) => {
    answer = (call) => (call.startsWith("GET") ? [200, VIEW] : [200, { txn_id: ID, state: "committed" }]);
    const shown = await atTerminal(["replay", ID, "--force", "commit", "--url", url], `${typed}\n`);
    expect(shown.text).toContain(`This commits ${ID} at this island alone, without its home ${A}`);
    expect(shown.text).toContain("Type yes to go on: ");
    expect(shown.text).toContain(said);
    expect(shown.code).toBe(exit);
    expect(asked.some(({ call }) => call.startsWith("POST"))).toBe(exit === 0);
  });

  it("ends the waiting of a home for an island that is gone for good", async () => {
    answer = (call) =>
      call.startsWith("GET")
        ? [200, { ...VIEW, state: "committed", locks: [], waits_for: [B] }]
        : [200, { txn_id: ID, state: "committed" }];
    const wrong = await txn(["replay", ID, "--force", "rollback", "--yes"]);
    expect([wrong.code, asked.length]).toEqual([69, 1]);
    const forced = await txn(["replay", ID, "--force", "commit", "--yes"]);
    expect(forced).toEqual({ code: 0, stdout: `${ID} is committed here, as you have forced it\n`, stderr: "" });
    expect(asked.at(-1)).toEqual({ call: "POST /v1/txn/replay", body: { txn_id: ID, force: "committed" } });
  });

  it("forces it with --yes", async () => {
    answer = (call) => (call.startsWith("GET") ? [200, VIEW] : [200, { txn_id: ID, state: "rolled_back" }]);
    const forced = await txn(["replay", ID, "--force", "rollback", "--yes"]);
    expect(forced).toEqual({ code: 0, stdout: `${ID} is rolled back here, as you have forced it\n`, stderr: "" });
    expect(asked.at(-1)).toEqual({ call: "POST /v1/txn/replay", body: { txn_id: ID, force: "rolled_back" } });
  });

  it("says where home has answered, whose decision counts: 69, and nothing was forced", async () => {
    answer = (call) => (call.startsWith("GET") ? [200, VIEW] : [200, { txn_id: ID, state: "rolled_back" }]);
    const refused = await txn(["replay", ID, "--force", "commit", "--yes"]);
    expect([refused.code, refused.stdout]).toEqual([69, ""]);
    expect(refused.stderr).toContain(`${ID} is rolled back here: its home has answered`);
    const json = await txn(["replay", ID, "--force", "commit", "--yes", "--json"]);
    expect([json.code, JSON.parse(json.stdout)]).toEqual([69, { txn_id: ID, state: "rolled_back", forced: false }]);
  });
});
