// A real Chromium for tests of the dashboard, and a page in it that notes what must not happen: errors, requests to other
// hosts, violations of the content security policy.

import { execFileSync } from "node:child_process";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { findProgram } from "../servers/server-process.ts";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** Undefined where there is none: the tests that need it skip themselves, and say so. */
export function browserPath(): string | undefined {
  return NAMES.map((name) => findProgram(name)).find((path) => path !== undefined);
}

export async function startBrowser(): Promise<Browser> {
  const executablePath = browserPath();
  if (executablePath === undefined) throw new Error("there is no Chromium on PATH; ask browserPath() first");
  // As root Chromium's sandbox does not start.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return await chromium.launch({ executablePath, args });
}

/** Does nothing where the page is built already. */
export function buildWeb(...flags: readonly string[]): void {
  execFileSync(process.execPath, ["scripts/build-web.mjs", "--strict", ...flags], { stdio: "inherit" });
}

export interface WatchedPage extends AsyncDisposable {
  readonly page: Page;
  /** Errors on its console and in its code. */
  readonly errors: string[];
  /** Where it has sent requests. */
  readonly hosts: Set<string>;
  readonly paths: string[];
}

/** What a browser says on its console of a server that has gone; nobody can keep it from that. */
const SERVER_GONE = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE/;

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const errors: string[] = [];
  const hosts = new Set<string>();
  const paths: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !SERVER_GONE.test(message.text())) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol === "data:") return;
    hosts.add(url.origin);
    paths.push(url.pathname);
  });
  await page.exposeFunction("violated", (what: string) => errors.push(`CSP: ${what}`));
  await page.addInitScript(
    `addEventListener("securitypolicyviolation", (event) => violated(event.violatedDirective + " " + event.blockedURI))`,
  );
  return { page, errors, hosts, paths, [Symbol.asyncDispose]: () => context.close() };
}

/**
 * What "Verify" says when it has ended. To be polled: "3 of 3" is what one node says, and the page itself may not have reached
 * another one yet, whose copy then could not be checked.
 */
export async function verified(page: Page): Promise<string> {
  await page.getByRole("button", { name: "Verify" }).click();
  await page.locator("button[aria-disabled=false]", { hasText: "Verify" }).waitFor();
  return await page.locator("#verdicts").innerText();
}
