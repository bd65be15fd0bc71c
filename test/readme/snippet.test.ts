// The program of README.md where nothing listens: it says so, once, instead of waiting without a word.

import { afterEach, expect, it } from "vitest";
import { freePort, waitFor } from "../servers/index.ts";
import { Program, readmeSnippet } from "./test-snippet.ts";

const programs: Program[] = [];
afterEach(() => Promise.all(programs.splice(0).map((one) => one.end())));

const BEFORE = `
const url = process.argv[2];
let complaints = 0;
const heard = (_fields, message) => {
  if (message.startsWith("could not acquire")) complaints++;
};
const logger = { info: heard, warn: heard, error: heard };
const payNext = () => undefined;
`;

async function program(snippet = readmeSnippet()): Promise<{ one: Program; port: number }> {
  const port = await freePort();
  const one = new Program(`postgres://postgres@127.0.0.1:${port}/postgres`, snippet, BEFORE);
  programs.push(one);
  return { one, port };
}

it("warns once that the database can't be reached: where, why, and what to do", async () => {
  const { one, port } = await program();
  await waitFor("the warning", () => one.exit !== undefined || one.warnings.length > 0);
  const where = `127.0.0.1:${port}/postgres`;
  expect(one.warnings[0]).toContain(
    `[BACKEND_UNAVAILABLE] TenureWarning: scope "payouts": could not acquire the scope: can't reach Postgres at ${where}`,
  );
  expect(one.warnings[0]).toContain("Check host and port, and that the server runs");
  expect(one.warnings[0]).toContain("createElector({ logger })");
  expect(one.exit).toBeUndefined();
});

/** Ends the program when this is true. */
function endsWhen(condition: string): string {
  const ending = `setInterval(() => { if (${condition}) { console.error("tried"); process.exit(); } }, 10);`;
  return readmeSnippet().replace("await elector.lead", `${ending}\nawait elector.lead`);
}

it("does not say it again while it tries again", async () => {
  const { one } = await program(endsWhen("elector.stats().acquireAttemptsTotal > 3"));
  await waitFor("a few attempts", () => one.exit !== undefined);
  expect(one.errors).toContain("tried");
  expect(one.warnings).toHaveLength(1);
});

it("warns of nothing where a logger is given, which hears it", async () => {
  const { one } = await program(endsWhen("complaints > 0").replace("postgres(url) }", "postgres(url), logger }"));
  await waitFor("a complaint", () => one.exit !== undefined);
  expect(one.errors).toBe("tried\n");
});
