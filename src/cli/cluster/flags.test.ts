import { describe, expect, it } from "vitest";
import { SERVER_DEFAULTS } from "../../contract/index.ts";
import { readConnection } from "../connection/connection.ts";
import { readClusterFlags } from "./flags.ts";
import { UsageError } from "../kit/flags.ts";
import { readChange, removalWarnings } from "../member/command.ts";
import { memberOf, viewOf } from "./test-cluster.ts";

describe("the command line of tenure cluster", () => {
  it.each([
    [["status"], { verb: "status", watch: false }],
    [["status", "--watch", "-o", "json"], { verb: "status", watch: true }],
    [["transfer", "--to", "n2", "--force"], { verb: "transfer", to: "n2", force: true }],
    [["transfer"], { verb: "transfer", to: undefined, force: false }],
    [["drain", "n1"], { verb: "drain", node: "n1", undo: false, force: false }],
    [["drain", "n1", "--force"], { verb: "drain", node: "n1", undo: false, force: true }],
    [["drain", "n1", "--undo"], { verb: "drain", node: "n1", undo: true, force: false }],
    [["snapshot", "save", "a.snap"], { verb: "snapshot-save", file: "a.snap", force: false }],
    [["snapshot", "save", "a.snap", "--force"], { verb: "snapshot-save", file: "a.snap", force: true }],
    [["snapshot", "save", "dir", "--keep", "14"], { verb: "snapshot-keep", directory: "dir", keep: 14 }],
    [["snapshot", "verify", "--", "-odd"], { verb: "snapshot-verify", file: "-odd", history: undefined }],
    [["snapshot", "verify", "a", "--history", "h"], { verb: "snapshot-verify", file: "a", history: "h" }],
  ])("%j", (args, step) => {
    expect(readClusterFlags(args)).toMatchObject({ step });
  });

  it.each([
    [[], "say what to do: status, elections, transfer, drain, resume, snapshot"],
    [["stauts"], "did you mean status?"],
    [["snapshot"], "say what to do: snapshot save, snapshot verify"],
    [["snapshot", "save"], "snapshot save needs a file"],
    [["snapshot", "save", "a", "b"], "takes one file, not 2"],
    [["transfer", "n2"], "the target is --to NODE"],
    [["status", "--force"], "--force belongs to transfer, drain and snapshot save"],
    [["snapshot", "verify", "a", "--force"], "--force belongs to snapshot save"],
    [["snapshot", "verify", "a", "--keep", "1"], "--keep belongs to snapshot save"],
    [["snapshot", "save", "a", "--keep", "0"], "--keep takes a number from 1 to 10000"],
    [["snapshot", "save", "a", "--keep", ""], "--keep takes a number from 1 to 10000"],
    [["snapshot", "save", "a", "--keep", "1", "--force"], "needs no --force"],
    [["snapshot", "save", "a", "--history", "h"], "--history belongs to snapshot verify"],
    [["status", "--keep", "1"], "--keep belongs to snapshot"],
    [["drain"], "drain needs a name: tenure cluster drain NAME"],
    [["drain", "n1", "n2"], "drain takes one name, not 2"],
    [["drain", "n1", "--undo", "--force"], "--undo needs no --force"],
    [["transfer", "--undo"], "--undo belongs to drain, not to transfer"],
    [["elections", "--watch"], "--watch belongs to status"],
    [["transfer", "--to", ""], "--to must not be empty"],
    [["status", "--key"], "--key takes a value"],
  ])("%j is refused", (args, message) => {
    expect(() => readClusterFlags(args)).toThrow(UsageError);
    expect(() => readClusterFlags(args)).toThrow(message);
  });
});

describe("where the servers are, and who asks", () => {
  it("comes from the flags, else from the environment, else it is this machine", async () => {
    expect(await readConnection({}, {})).toMatchObject({
      urls: [`http://${SERVER_DEFAULTS["api.listen"]}`],
      key: undefined,
      tls: null,
      output: "table",
    });
    const environment = { TENURE_URL: "http://a:1, http://b:2", TENURE_API_KEY: "k1" };
    expect(await readConnection({}, environment)).toMatchObject({ urls: ["http://a:1", "http://b:2"], key: "k1" });
    expect(await readConnection({ url: "http://c:3", key: "k2" }, environment)).toMatchObject({
      urls: ["http://c:3"],
      key: "k2",
    });
  });

  it("it is known where the key came from, for whoever is refused", async () => {
    const environment = { TENURE_API_KEY: "k1" };
    expect((await readConnection({}, {})).keyFrom).toBeNull();
    expect((await readConnection({}, environment)).keyFrom).toBe("TENURE_API_KEY");
    expect((await readConnection({ key: "k2" }, environment)).keyFrom).toBe("--key");
  });

  it.each([
    [{ url: "http://a,,http://b" }, "empty place"],
    [{ cert: "x" }, "--cert needs --client-key"],
    [{ "client-key": "x" }, "--client-key needs --cert"],
    [{ ca: "x", url: "http://a" }, "for https:// URLs"],
    [{ ca: "/nowhere/ca.pem", url: "https://a" }, "--ca: can't read /nowhere/ca.pem: there is no such file"],
    [{ output: "yaml" }, "-o takes table or json"],
  ])("%j is refused", async (values, message) => {
    await expect(readConnection(values, {})).rejects.toThrow(message);
  });
});

describe("the command line of tenure member", () => {
  it("is one change of one node", () => {
    expect(readChange(["add", "n4"], { isVoter: true })).toEqual({ op: "add", nodeId: "n4", promote: true });
    expect(readChange(["remove", "n4"])).toEqual({ op: "remove", nodeId: "n4" });
    expect(readChange(["remove", "n4"], { isForced: true })).toEqual({ op: "remove", nodeId: "n4", force: true });
    expect(() => readChange(["add", "n4"], { isForced: true })).toThrow("--force belongs to remove and replace");
  });

  it.each([
    [["add"], false, "add needs a node"],
    [["add", "n1", "n2"], false, "one change at a time"],
    [["add", "N1"], false, "is no node id"],
    [["promote", "n1"], true, "--voter belongs to add"],
    [["prmote", "n1"], false, "did you mean promote?"],
  ])("%j is refused", (words, isVoter, message) => {
    expect(() => readChange(words, { isVoter })).toThrow(message);
  });

  it("warns of the removal of the leader, and of what leaves no spare", () => {
    const three = viewOf("n1");
    const five = { ...three, members: ["n1", "n2", "n3", "n4", "n5"].map((id) => memberOf(id)) };
    const two = { ...three, members: [memberOf("n1"), memberOf("n2"), memberOf("n3", { kind: "learner" })] };
    expect(removalWarnings(five, "n2")).toEqual([]);
    expect(removalWarnings(five, "n1")).toEqual([expect.stringContaining("n1 leads")]);
    expect(removalWarnings(three, "n2")).toEqual([expect.stringContaining("two voters are left")]);
    expect(removalWarnings(two, "n2")).toEqual([expect.stringContaining("one voter is left")]);
    expect(removalWarnings(two, "n3")).toEqual([]);
  });
});
