// Where a text stops being JSON, and what is expected there. The platform's own message names the place only sometimes, and
// repeats a piece of the text, which may hold a secret. Pure; used only where JSON.parse has refused already.

import { assertNever } from "../../contract/errors.ts";

export interface JsonFault {
  readonly at: number;
  readonly expected: string;
}

const SPACE = /[ \t\r\n]*/y;
// oxlint-disable-next-line no-control-regex -- a text in JSON has none of them
const TEXT = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const LITERAL = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

/** What may come next. An end closes what was opened last; where nothing is open it is the end of the text. */
type Wanted = "value" | "value or ]" | "name" | "name or }" | "colon" | "comma or end";

export function jsonFaultAt(text: string): JsonFault {
  const open: ("}" | "]")[] = [];
  let wanted: Wanted = "value";
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  for (;;) {
    at = endOf(SPACE, text, at);
    const next = text[at];
    const close = open.at(-1);
    const fault = { at, expected: expectedText(wanted, close) };
    if (wanted === "colon") {
      if (next !== ":") return fault;
      at += 1;
      wanted = "value";
    } else if (next === close && close !== undefined && ["value or ]", "name or }", "comma or end"].includes(wanted)) {
      open.pop();
      at += 1;
      wanted = "comma or end";
    } else if (wanted === "comma or end") {
      if (next !== "," || close === undefined) return fault;
      at += 1;
      wanted = close === "}" ? "name" : "value";
    } else if (wanted === "name" || wanted === "name or }") {
      const end = endOf(TEXT, text, at);
      if (end < 0) return fault;
      at = end;
      wanted = "colon";
    } else if (next === "{" || next === "[") {
      open.push(next === "{" ? "}" : "]");
      at += 1;
      wanted = next === "{" ? "name or }" : "value or ]";
    } else {
      const end = Math.max(endOf(TEXT, text, at), endOf(LITERAL, text, at));
      if (end < 0) return fault;
      at = end;
      wanted = "comma or end";
    }
  }
}

function expectedText(wanted: Wanted, close: "}" | "]" | undefined): string {
  switch (wanted) {
    case "colon":
      return "a colon";
    case "comma or end":
      return close === undefined ? "the end of the file" : `a comma or ${close}`;
    case "name":
      return "a name in double quotes";
    case "name or }":
      return "a name in double quotes or }";
    case "value":
      return "a value";
    case "value or ]":
      return "a value or ]";
    default:
      return assertNever(wanted, "JSON");
  }
}

/** After the match that begins at `at`; -1 where there is none. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
}
