// `npm run pictures`: makes the pictures of README.md again. Three nodes with sample jobs run for half a minute and their leader is killed twice; what the
// terminal shows meanwhile becomes docs/pictures/kill.svg, and the dashboard after the second kill docs/pictures/dashboard.png.

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { startBrowser } from "../web/test-browser.ts";
import { type PrintedLine, svgOf } from "./recording.ts";

const FOLDER = "docs/pictures";
const COMMAND = "npm start -- --for 30s";
const LINE = /^\s*(\d+\.\d{3}) s {2}(.*)$/;
/** Addresses and keys of nodes that are gone when anybody reads them, and what only somebody wants to know who watches. */
const LEFT_OUT =
  /^(the page|jobs and scopes are served|as their operator|then, for instance|n\d (runs|is a)|looking|stopping|nobody leads)|kills the leader: /;
/** Of the start, what is not waited for again. */
const SKIPPED_FROM_MS = 1_000;
const SKIPPED_TO_MS = 5_900;
const KILLS = 2;
/** The one that was killed is back, and counted as well. */
const AFTER_KILL_MS = 4_000;
const TIME_WIDTH = "00.000 s".length;
const HOLD_MS = 6_000;
const COLOURS = [
  [/^\$/, "#88c0d0"],
  [/jobs went on|0 were lost/, "#98c379"],
  [/kill -9|SIGKILL/, "#e06c75"],
  [/elected/, "#e5c07b"],
] as const;

const lines: PrintedLine[] = [];
let browser: Browser | null = null;
let kills = 0;
let opened: Promise<Page> | null = null;
let picture: Promise<void> | null = null;
let url = "";
let fragment = "";

mkdirSync(FOLDER, { recursive: true });
const child = spawn(process.execPath, ["src/cli/main.ts", "dev", "--for", "30s"], {
  stdio: ["ignore", "pipe", "inherit"],
});
const ended = new Promise<number | null>((resolve) => void child.once("exit", resolve));
for await (const line of createInterface({ input: child.stdout })) {
  const [, seconds, text] = LINE.exec(line) ?? [];
  if (seconds === undefined || text === undefined) continue;
  const atMs = Number(seconds) * 1_000;
  fragment ||= /^the page: [^#]+(#\S+)/.exec(text)?.[1] ?? "";
  // The last node's: the first one leads, and is killed first.
  url ||= /^jobs and scopes are served at .*(http:[^,:]+:\d+):/.exec(text)?.[1] ?? "";
  if (text.includes("elected")) opened ??= openDashboard();
  if (text.startsWith("jobs went on") && ++kills === KILLS) picture = photograph();
  if (LEFT_OUT.test(text)) continue;
  const shownMs = atMs - Math.max(0, Math.min(atMs, SKIPPED_TO_MS) - SKIPPED_FROM_MS);
  lines.push({ atMs: shownMs, text: `${seconds} s`.padStart(TIME_WIDTH) + `  ${text}` });
}
await picture;
await (browser as Browser | null)?.close();
if ((await ended) !== 0 || picture === null) throw new Error("the demonstration did not end as it should: no pictures");
writeFileSync(`${FOLDER}/kill.svg`, svgOf(lines, { command: COMMAND, holdMs: HOLD_MS, colours: COLOURS }));

/** Of the page that was opened before the first kill: it has seen all leaders. */
async function photograph(): Promise<void> {
  const page = await opened!;
  await sleep(AFTER_KILL_MS);
  await page.screenshot({ path: `${FOLDER}/dashboard.png` });
}

async function openDashboard(): Promise<Page> {
  browser = await startBrowser();
  const context = await browser.newContext({ viewport: { width: 1280, height: 880 }, colorScheme: "dark" });
  const page = await context.newPage();
  await page.goto(`${url}/${fragment}`);
  await page.getByRole("button", { name: "1 min" }).click();
  return page;
}
