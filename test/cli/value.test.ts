// `tenure value` as a process: every verb, each kind of output, and what is refused. The servers are an API over values in memory; real ones are in
// test/values.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startApi, type TestApi } from "../api/test-api.ts";
import { waitFor } from "../servers/index.ts";
import { documented, fieldsOf, linesOf } from "./test-document.ts";
import { start, tenure, tenureJson } from "./test-tenure.ts";

let t: TestApi;
let access: string[];
beforeAll(async () => {
  t = await startApi();
  access = ["--url", t.url, "--key", "client-key"];
});
afterAll(async () => t[Symbol.asyncDispose]());

async function refused(code: number, said: RegExp, ...args: readonly string[]): Promise<void> {
  const found = await tenure("value", ...args);
  expect({ code: found.code, stdout: found.stdout }).toEqual({ code, stdout: "" });
  expect(found.stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(found.stderr).toMatch(said);
}

describe("tenure value", () => {
  it("puts, gets and deletes, under conditions", async () => {
    const put = await tenureJson("value", "put", "a/b", '{"someName": 1}', ...access);
    expect(put).toEqual({ code: 0, name: "a/b", version: 101, scope: null, epoch: null });
    expect(fieldsOf(put)).toEqual(documented("### `tenure value put NAME JSON -o json`"));
    expect(await tenure("value", "get", "a/b", ...access)).toEqual({ code: 0, stdout: '{"someName":1}\n', stderr: "" });
    const got = await tenureJson("value", "get", "a/b", ...access);
    expect(got).toMatchObject({ name: "a/b", value: { someName: 1 }, version: 101, scope: null });
    expect(fieldsOf(got)).toEqual(documented("### `tenure value get NAME -o json`"));
    const again = await tenure("value", "put", "a/b", "2", "--if-version", "101", ...access);
    expect(again).toEqual({ code: 0, stdout: "a/b is written, version 102\n", stderr: "" });
    await refused(
      69,
      /is not as it was expected: it has version 102/,
      "put",
      "a/b",
      "3",
      "--if-version",
      "101",
      ...access,
    );
    await refused(
      69,
      /epoch 7 of scope "s" is over, or was never given out/,
      "put",
      "a/b",
      "3",
      "--scope",
      "s",
      "--epoch",
      "7",
      ...access,
    );
    const deleted = await tenureJson("value", "delete", "a/b", ...access);
    expect(deleted).toEqual({ code: 0, name: "a/b", deleted: true, version: 103, scope: null, epoch: null });
    expect(fieldsOf(deleted)).toEqual(documented("### `tenure value delete NAME -o json`"));
    expect((await tenure("value", "delete", "a/b", ...access)).stdout).toBe("a/b was not there\n");
    await refused(69, /there is no value "a\/b"/, "get", "a/b", ...access);
    await refused(
      77,
      /has the role viewer, and this needs client/,
      "put",
      "x",
      "1",
      "--url",
      t.url,
      "--key",
      "viewer-key",
    );
  });

  it("takes a value from stdin", async () => {
    const run = start(["value", "put", "piped", "-", ...access], {}, undefined, '{"from": "stdin"}\n');
    expect(await run.ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^piped is written/) as string });
    expect((await tenure("value", "get", "piped", ...access)).stdout).toBe('{"from":"stdin"}\n');
    expect(await start(["value", "put", "piped", "-", ...access], {}, undefined, "{").ended).toMatchObject({
      code: 64,
    });
    await tenure("value", "delete", "piped", ...access);
  });

  it("a command of tenure run writes under its epoch, and says so; after it, it is refused", async () => {
    const campaign = { scope: "payer", session: "1", identity: "i", metadata: {}, ttlMs: 5_000, waitMs: 0 };
    const grant = await t.scopes.acquire(campaign, new AbortController().signal);
    const epoch = grant.granted ? grant.epoch : 0;
    const led = { TENURE_SCOPE: "payer", TENURE_EPOCH: String(epoch) };
    const { stdout } = await start(["value", "put", "led", "1", ...access], led).ended;
    expect(stdout).toBe(`led is written, version ${t.values.version}, in epoch ${epoch} of payer\n`);
    await t.scopes.askResign("payer", true);
    expect(await start(["value", "put", "led", "2", ...access], led).ended).toMatchObject({ code: 69, stdout: "" });
    expect(t.values.get("led")?.value).toBe(1);
    await tenure("value", "delete", "led", ...access);
  });

  it("lists as a table, one object, or an object on each line", async () => {
    await tenure("value", "put", "job/1", '{"at": 1}', ...access);
    await tenure("value", "put", "job/2", "2", ...access);
    await tenure("value", "put", "other", "3", ...access);
    const list = await tenureJson<{ values: { name: string }[] }>("value", "list", "--prefix", "job/", ...access);
    expect(list.values.map(({ name }) => name)).toEqual(["job/1", "job/2"]);
    expect(fieldsOf(list)).toEqual(documented("### `tenure value list -o json`"));
    const { stdout: lines } = await tenure("value", "list", "--prefix", "job/", ...access, "-o", "jsonl");
    expect(linesOf(lines)).toEqual(list.values);
    const { stdout: table } = await tenure("value", "list", ...access);
    expect(table.split("\n")).toHaveLength(5);
    expect(table).toMatch(/^NAME +VERSION +UPDATED +WRITTEN BY +VALUE\njob\/1 +\d+ +\S+ +- +\{"at":1\}\n/);
  });

  it("watches: what there is, then each change, until SIGINT", async () => {
    const run = start(["value", "watch", "--prefix", "w/", ...access, "-o", "json"]);
    await waitFor("the list to be whole", () => run.said.stdout.includes('"current"'));
    await tenure("value", "put", "w/1", '{"labels": 1}', ...access);
    await tenure("value", "delete", "w/1", ...access);
    await waitFor("both changes", () => run.said.stdout.includes('"deleted"'));
    run.child.kill("SIGINT");
    expect((await run.ended).code).toBe(130);
    const items = linesOf(run.said.stdout) as { kind: string }[];
    expect(items.map(({ kind }) => kind)).toEqual(["current", "put", "deleted"]);
    const fields = [...new Set(items.flatMap((item) => fieldsOf(item)))].toSorted();
    expect(fields).toEqual(documented("### `tenure value watch -o json`"));
  });
});
