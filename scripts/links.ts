// Links in documents lead somewhere: a relative link to a file or a folder that exists, an anchor to a heading of its page. And
// an index names each document once, and no other.

import { posix } from "node:path";
import { lineAt, type SourceFile, type Violation } from "./source.ts";

export interface LinksReport {
  readonly links: number;
  readonly anchors: number;
  readonly violations: readonly Violation[];
}

const LINK = /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)/gm;
const HEADING = /^ {0,3}#{1,6} +(.*?)(?: +#+)? *$/gm;
const ELSEWHERE = /^(?:[a-z][a-z\d+.-]*:|\/\/)/i;

/** `exists`: whether there is a file or a folder of this path, from the repository's root. */
export function checkLinks(documents: readonly SourceFile[], exists: (path: string) => boolean): LinksReport {
  const violations: Violation[] = [];
  const anchorsOf = new Map(documents.map(({ path, text }) => [path, anchorsIn(text)]));
  let links = 0;
  let anchors = 0;
  for (const { path, text } of documents) {
    for (const { target, offset } of linksIn(text)) {
      links++;
      const report = (why: string): void => {
        violations.push({ path, line: lineAt(text, offset), message: `links to ${target}: ${why}` });
      };
      const [file = "", anchor] = target.split("#");
      const page = file === "" ? path : posix.normalize(posix.join(posix.dirname(path), decodeURIComponent(file)));
      if (!exists(page)) report(`there is no ${page}`);
      else if (anchor !== undefined && anchorsOf.has(page)) {
        anchors++;
        if (!anchorsOf.get(page)!.has(anchor)) report(`${page} has no heading of this name`);
      }
    }
  }
  return { links, anchors, violations };
}

/** What a document of an index lacks: `documents` that it does not link to, and those that it links to more than once. */
export function checkIndex(index: SourceFile, documents: readonly string[]): Violation[] {
  const folder = posix.dirname(index.path);
  const named = linksIn(index.text).map(({ target }) => posix.normalize(posix.join(folder, target.split("#")[0]!)));
  return documents
    .filter((path) => path !== index.path)
    .flatMap((path) => {
      const times = named.filter((one) => one === path).length;
      if (times === 1) return [];
      const message = times === 0 ? `does not name ${path}` : `names ${path} ${times} times`;
      return [{ path: index.path, line: 1, message }];
    });
}

interface Link {
  readonly target: string;
  readonly offset: number;
}

/** Of a document, without those that leave the repository. */
function linksIn(text: string): Link[] {
  return [...withoutCode(text).matchAll(LINK)]
    .map(({ 1: inline, 2: defined, index }) => ({ target: inline ?? defined ?? "", offset: index }))
    .filter(({ target }) => !ELSEWHERE.test(target));
}

/** As GitHub names them: the second heading of one name ends in -1. */
function anchorsIn(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of withoutBlocks(text).matchAll(HEADING)) {
    const name = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    let anchor = name;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${name}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Blanks in place of code, so that offsets stay. */
function withoutBlocks(text: string): string {
  return text.replaceAll(/^( *)(```+|~~~+)[^]*?^ *\2.*$/gm, blank);
}

function withoutCode(text: string): string {
  // Code in a line ends before the end of its paragraph, or is none.
  return withoutBlocks(text).replaceAll(/(?<!`)(`+)(?!`)(?:(?!\n[ \t]*\n)[^])*?(?<!`)\1(?!`)/g, blank);
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}
