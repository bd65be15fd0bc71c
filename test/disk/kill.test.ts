import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { newPath, openAt } from "./test-directory.ts";
import { isEntryAt, openStorage } from "./test-storage.ts";

const WRITER = new URL("./test-writer.ts", import.meta.url).pathname;

test("trap 24: kill -9 in the middle of writes leaves everything that was said to be durable, and at most a tail to cut", async () => {
  const path = await newPath();
  let acknowledged = 1;
  for (let round = 1; round <= 6; round++) {
    const writer = spawn(process.execPath, [WRITER, path], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(writer, "exit");
    const enough = acknowledged + 37 * round;
    for await (const line of createInterface(writer.stdout)) {
      acknowledged = Number(line);
      if (acknowledged === enough) writer.kill("SIGKILL");
    }
    await ended;
    expect(acknowledged).toBeGreaterThanOrEqual(enough);

    const directory = await openAt(path);
    const opened = await openStorage(directory.disk);
    expect(opened.recovery).toMatch(/intact|torn-tail-cut/);
    expect(opened.peer).toBe("n1@a1");
    // One more may have been written whose acknowledgement was not.
    expect([acknowledged, acknowledged + 1]).toContain(opened.entries.at(-1)!.index);
    expect(opened.entries.every((entry, i) => isEntryAt(entry, i + 2, 100))).toBe(true);
    await opened.storage.close();
    await directory.close();
    acknowledged = opened.entries.at(-1)!.index;
  }
});
