// Words that documents don't use, because readers all over the world must look twice: one with a plain substitute, which the message gives. Code, quoted
// names of tests and addresses of links are left out.

import type { SourceFile, Violation } from "./source.ts";

/** The word, and what to say instead. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\btold\b/i, "reported, notified, returned"],
  [/\bmend(?:s|ed|ing)?\b/i, "repair"],
  [/\bbeside\b/i, "next to"],
  [/(?<!because )\bof late\b/i, "recently"],
  [/\blet(?:s|ting)? go of\b/i, "release"],
  [/\bcosts (?:an instance|its lease)\b/i, "is released when its lease expires"],
  [/\bis followed after\b/i, "fails over in"],
];
const BLOCK = /^\s*```/;
const LEFT_OUT = /`[^`]*`|"[^"]*"|\]\([^)]*\)/g;

export function checkWords(documents: readonly SourceFile[]): Violation[] {
  const violations: Violation[] = [];
  for (const { path, text } of documents) {
    let isCode = false;
    for (const [at, line] of text.split("\n").entries()) {
      if (BLOCK.test(line)) isCode = !isCode;
      if (isCode) continue;
      const prose = line.replaceAll(LEFT_OUT, "");
      for (const [word, instead] of WORDS) {
        const found = word.exec(prose)?.[0];
        if (found !== undefined) violations.push({ path, line: at + 1, message: `says "${found}": ${instead}` });
      }
    }
  }
  return violations;
}
