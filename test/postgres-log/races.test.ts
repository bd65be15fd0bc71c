// Leaders that race, freeze and lose their connection, on a real server: the table must be what was answered.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { LogAppended } from "../../src/ports/log.ts";
import { startProxy, waitFor } from "../servers/index.ts";
import { connectTo } from "../postgres/test-seat.ts";
import { bytes, type LogNode } from "./test-log-node.ts";
import { useLogServer } from "./test-log-server.ts";

const { server, freshDatabase, started } = useLogServer("race");

async function stored(database: string): Promise<string[]> {
  const text =
    "select position || ':' || epoch || ':' || convert_from(data, 'utf8') as line from tenure_log order by position";
  return (await server().query<{ line: string }>(text, [], database)).map(({ line }) => line);
}

type Answer = LogAppended | { readonly outcome: "rejected" };

function rejected(): Answer {
  return { outcome: "rejected" };
}

test("two writers race with ascending epochs: each record is in the table exactly as it was answered", async () => {
  const { name, url } = await freshDatabase();
  const rivals = [await started(url, "a"), await started(url, "b")];
  const committed: string[] = [];
  const outcomes = new Set<string>();
  let epoch = 0;
  const reign = async ({ log }: LogNode): Promise<void> => {
    for (let turn = 0; turn < 15; turn++) {
      const mine = ++epoch;
      const opened = await log.open(mine);
      if (opened.outcome !== "opened") continue;
      let after = opened.head.position;
      const answers: Promise<void>[] = [];
      for (let count = 0; count < 20; count++) {
        const text = `${mine}-${count}`;
        const at = ++after;
        const note = (answer: Answer): void => {
          outcomes.add(answer.outcome);
          if (answer.outcome === "committed") committed.push(`${at}:${mine}:${text}`);
        };
        answers.push(log.append(mine, at - 1, [bytes(text)]).then(note, () => note(rejected())));
        if (count % 5 === 4) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await Promise.all(answers);
    }
  };
  await Promise.all(rivals.map(reign));
  const position = (line: string): number => Number(line.split(":")[0]);
  expect(await stored(name)).toEqual(committed.toSorted((a, b) => position(a) - position(b)));
  expect([...outcomes]).toEqual(expect.arrayContaining(["committed", "fenced"]));
  for (const { log, fold } of rivals) {
    await waitFor("a rival to have everything", () => log.head().position === committed.length);
    expect(fold.applied).toEqual(await stored(name));
  }
});

test("trap 66: a backend that is ended in the middle of an append gives unknown; opening the same epoch again tells which", async () => {
  const { name, url } = await freshDatabase();
  const { log, fold } = await started(url, "a");
  await log.open(1);
  expect(await log.append(1, 0, [bytes("first")])).toEqual({ outcome: "committed", position: 1 });
  // Somebody holds the head's row, so the append is under way until its backend is ended.
  const holder = await connectTo(url);
  await holder.query("begin; select * from tenure_log_head for update");
  const waits =
    "select pid from pg_stat_activity where application_name like 'tenure log%leader%' and wait_event_type = 'Lock'";
  const lost = log.append(1, 1, [bytes("lost")]);
  const behind = log.append(1, 2, [bytes("behind")]).catch((error: unknown) => error);
  await waitFor("the append to wait", async () => (await server().query(waits, [], name)).length > 0);
  await server().query(`select pg_terminate_backend(pid) from (${waits}) w`, [], name);
  expect(await lost).toEqual({ outcome: "unknown" });
  // Sent together, it shares the fate.
  expect(await behind).toEqual({ outcome: "unknown" });
  await expect(log.append(1, 3, [bytes("no")])).rejects.toMatchObject({ code: "NOT_LEADER" });
  await holder.end();
  const again = await log.open(1);
  expect(again).toEqual({ outcome: "opened", head: { position: 1, epoch: 1 } });
  expect(await log.append(1, 1, [bytes("second")])).toEqual({ outcome: "committed", position: 2 });
  expect(await stored(name)).toEqual(["1:1:first", "2:1:second"]);
  expect(fold.applied).toEqual(["1:1:first", "2:1:second"]);
});

test("trap 66: an append whose answer is lost is unknown and there; one that gets stuck on its way never arrives after the next open", async () => {
  const { name, url } = await freshDatabase();
  const proxy = await startProxy({ host: "127.0.0.1", port: server().port });
  try {
    const through = new URL(url);
    through.port = String(proxy.port);
    const { log, fold } = await started(through.href, "a");
    await log.open(1);
    proxy.cut("to-client");
    const unheard = log.append(1, 0, [bytes("unheard")]);
    await waitFor("the record", async () => (await stored(name)).length === 1);
    await proxy.heal("reset");
    expect(await unheard).toEqual({ outcome: "unknown" });
    expect(await log.open(1)).toEqual({ outcome: "opened", head: { position: 1, epoch: 1 } });
    expect(fold.applied).toEqual(["1:1:unheard"]);
    // Now the request itself is held back, while the same epoch is opened again past the proxy.
    proxy.cut("to-server");
    const stuck = log.append(1, 1, [bytes("stuck")]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { log: other } = await started(url, "b");
    expect(await other.open(1)).toEqual({ outcome: "opened", head: { position: 1, epoch: 1 } });
    await proxy.heal("resume");
    await expect(stuck).rejects.toMatchObject({ code: "NOT_LEADER" });
    expect(await other.append(1, 1, [bytes("other")])).toEqual({ outcome: "committed", position: 2 });
    expect(await stored(name)).toEqual(["1:1:unheard", "2:1:other"]);
  } finally {
    await proxy.end();
  }
});

test("a writer that is stopped (SIGSTOP) and continued after a higher epoch was opened commits nothing more", async () => {
  const { name, url } = await freshDatabase();
  const script = fileURLToPath(new URL("test-writer-process.ts", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify({ url, epoch: 1 })], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said: { said: string; outcome?: string; text?: string }[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => said.push(JSON.parse(line) as (typeof said)[number]));
  let isGone = false;
  child.once("exit", () => {
    isGone = true;
  });
  try {
    await waitFor("fifty appends", () => said.filter(({ outcome }) => outcome === "committed").length >= 50);
    child.kill("SIGSTOP");
    const next = await started(url, "next");
    const opened = await next.log.open(2);
    expect(opened.outcome).toBe("opened");
    const before = await stored(name);
    expect(await next.log.append(2, before.length, [bytes("next")])).toMatchObject({ outcome: "committed" });
    child.kill("SIGCONT");
    await waitFor("the stopped one to end", () => isGone);
    expect(await stored(name)).toEqual([...before, `${before.length + 1}:2:next`]);
    expect(said.at(-1)).toMatchObject({ outcome: "fenced", epoch: 2 });
    const told = said.filter(({ outcome }) => outcome === "committed").map(({ text }) => text);
    // Whatever it was told is there; the last one that is there may have been told after the pause.
    expect(before.map((line) => line.split(":")[2])).toEqual(told);
  } finally {
    child.kill("SIGKILL");
  }
});
