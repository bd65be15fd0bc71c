// Configuration files as values: both formats say the same, and what is no JSON is found where the platform finds it.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonFaultAt } from "./json-fault.ts";
import { parseConfigText } from "./text.ts";

describe("a configuration's text", () => {
  it("says the same in TOML as in JSON", () => {
    const toml = `
# one node
node_id = "n1"
data_dir = 'C:\\data'
peers = { n2 = "10.0.0.2:7400" }

[api]
listen = "127.0.0.1:7401"
tls.cert_file = "a.pem"

[election]
enable_lease = true
node_priority = 0x0F

[[keys]]
name = "ops"
[[keys]]
name = "ci"
`;
    const value = {
      node_id: "n1",
      data_dir: "C:\\data",
      peers: { n2: "10.0.0.2:7400" },
      api: { listen: "127.0.0.1:7401", tls: { cert_file: "a.pem" } },
      election: { enable_lease: true, node_priority: 15 },
      keys: [{ name: "ops" }, { name: "ci" }],
    };
    expect(parseConfigText("a.toml", toml)).toStrictEqual(value);
    expect(parseConfigText("a.json", JSON.stringify(value))).toStrictEqual(value);
    expect(parseConfigText("a.conf", JSON.stringify(value))).toStrictEqual(value);
    expect(parseConfigText("/dev/stdin", toml)).toStrictEqual(value);
  });

  it("takes __proto__ for a name like any other", () => {
    const value = parseConfigText("a.toml", "[__proto__]\nx = 1\n") as object;
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect("x" in value).toBe(false);
  });

  it("has no dates: they become what no field takes", () => {
    const { at, list } = parseConfigText("a.toml", "at = 1979-05-27T07:32:00Z\nlist = [07:32:00]\n") as {
      at: unknown;
      list: unknown[];
    };
    expect([typeof at, typeof list[0]]).toEqual(["symbol", "symbol"]);
  });

  it("is bounded in depth", () => {
    expect(() => parseConfigText("a.toml", `a = ${"[".repeat(100)}${"]".repeat(100)}`)).toThrow(/is not TOML: line 1/);
  });
});

describe("where a text stops being JSON", () => {
  it("no beginning of JSON is at fault before its end", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, cut) => {
        const start = text.slice(0, cut % (text.length + 1));
        const { at } = jsonFaultAt(start);
        // A text or a word that is cut off is at fault where it begins.
        expect(start.slice(at)).toMatch(/^(?:".*|[-\w.+]*)$/s);
      }),
    );
  });

  it("a character that belongs nowhere is found where it stands", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(jsonFaultAt(`${text} ~`).at).toBe(text.length + 1);
        expect(jsonFaultAt(`[${text}, ~]`).at).toBe(text.length + 3);
      }),
    );
  });
});
