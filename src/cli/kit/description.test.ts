import { describe as suite, expect, expectTypeOf, it } from "vitest";
import { describe, flagsOf, kindsOf, verbsOf, wordsOf } from "./description.ts";

const HELP = `tenure thing VERB: a thing.

  show NAME          shows it
  store save FILE    saves it; goes on
                     in a second line
  store check DIR    checks it
  controller the verb may be as long as its column
  keep [FILE]        keeps it
  put NAME           puts it
  put -- COMMAND     the same of a command

  --on-lose stop     ends it
  --on-lose kill     ends it at once
  --grace 2s         how long
  --label NAME=VALUE what it has
  --dir DIR          where
                     it is
  --role ROLE        as whom
  --force            all the same
  -o table|json      how

exit codes: 0 done
`;
const THING = describe("thing", "a thing", HELP, { lists: ["label"], offers: { "--role": ["a", "b"] } });

suite("a help text", () => {
  it("says which flags there are, what each takes, and --help in any case", () => {
    expect(flagsOf(THING).map(({ usage, offer }) => [usage, offer])).toEqual([
      ["--on-lose stop", ["stop", "kill"]],
      ["--grace 2s", "any"],
      ["--label NAME=VALUE", "any"],
      ["--dir DIR", "file"],
      ["--role ROLE", ["a", "b"]],
      ["--force", "none"],
      ["-o table|json", ["table", "json"]],
      ["--help", "none"],
    ]);
    expect(flagsOf(THING)[3]!.text).toBe("where it is");
    expect(flagsOf(describe("version", "the version", ""))).toEqual([]);
  });

  it("says which kinds the parser knows, by names that the compiler knows too", () => {
    const kinds = kindsOf(THING);
    expect(kinds).toEqual({
      "on-lose": "value",
      grace: "value",
      label: "list",
      dir: "value",
      role: "value",
      force: "switch",
      output: "value",
      help: "switch",
    });
    expectTypeOf<keyof typeof kinds>().toEqualTypeOf<
      "on-lose" | "grace" | "label" | "dir" | "role" | "force" | "output" | "help"
    >();
  });

  it("says which verbs there are, and what follows each", () => {
    expect(wordsOf(THING)).toEqual({
      show: "any",
      store: ["save", "check"],
      controller: "none",
      keep: "file",
      put: "any",
    });
    const verbs = verbsOf(THING);
    expectTypeOf<(typeof verbs)[number]>().toEqualTypeOf<"show" | "store" | "controller" | "keep" | "put">();
    expect(verbsOf(describe("x", "", "x\n\n  tenure x print     prints\n  tenure x apply --all   applies\n"))).toEqual([
      "print",
      "apply",
    ]);
  });
});
