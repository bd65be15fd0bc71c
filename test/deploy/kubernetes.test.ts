// The start script of the pods in deploy/kubernetes, with the environment that the manifest gives them, against `tenure config check`.
// The manifests themselves are read by manifests.test.ts.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { cleanEnvironment, imagePath } from "./test-container.ts";
import { FOLDER, found, PODS } from "./test-manifests.ts";

/** Of the machine, not of npm. */
const TENURE = "tenure";

describe("start.sh, with the environment of the manifest", () => {
  let directory: string;
  let path: string;

  beforeAll(async () => {
    directory = await temporaryDirectory("kubernetes", undefined);
    path = imagePath(directory);
    const tenure = (...args: string[]): void => {
      const { status, stderr } = spawnSync(TENURE, args, { env: cleanEnvironment(path), encoding: "utf8" });
      expect(status, stderr).toBe(0);
    };
    tenure("cert", "init", "--dir", join(directory, "ca"));
    for (const pod of PODS)
      tenure(
        "cert",
        "issue",
        "--dir",
        join(directory, "ca"),
        "--out",
        join(directory, "tls"),
        "--node-id",
        pod,
        "--host",
        pod,
      );
    // What it would start is checked instead, with all its flags said.
    const check = `echo "$@"; exec "${process.execPath}" "${resolve("src/cli/main.ts")}" config check "$4"`;
    path = imagePath(directory, check);
  });
  afterAll(() => removeDirectory(directory));

  function run(pod: string | undefined, more: Readonly<Record<string, string>> = {}) {
    const home = join(directory, pod ?? "none");
    mkdirSync(join(home, "run"), { recursive: true });
    const file = join(home, "tenure.toml");
    writeFileSync(file, readFileSync(join(FOLDER, "tenure.toml"), "utf8").replaceAll("/run/tenure", join(home, "run")));
    const env: Record<string, string> = {
      ...(pod === undefined ? {} : { TENURE_NODE_ID: pod }),
      POD_NAMESPACE: "jobs",
    };
    for (const { name, value } of found("StatefulSet", "tenure").spec.template.spec.containers[0]!.env ?? []) {
      if (value !== undefined) env[name] = value.replaceAll(/\$\((\w+)\)/g, (_, key: string) => env[key] ?? "");
    }
    return spawnSync("sh", [join(FOLDER, "start.sh")], {
      encoding: "utf8",
      env: {
        ...cleanEnvironment(path),
        ...env,
        TLS_DIR: join(directory, "tls"),
        RUN_DIR: join(home, "run"),
        CONFIG_FILE: file,
        TENURE_DATA_DIR: join(home, "data"),
        ...more,
      },
    });
  }

  it.each(PODS)("%s starts with a configuration that is right, and founds nothing", (pod) => {
    const { status, stdout, stderr } = run(pod);
    expect(status, stderr).toBe(0);
    expect(stdout.split("\n")[0]).toBe(`server start --config ${join(directory, pod, "tenure.toml")}`);
    expect(stdout).toContain(pod);
  });

  it("only the pod that the config map names founds the cluster, also when it is started twice", () => {
    for (const pod of [...PODS, PODS[0]!]) {
      const { status, stdout } = run(pod, { BOOTSTRAP_NODE: "tenure-0" });
      expect(status).toBe(0);
      expect(stdout.split("\n")[0]!.endsWith(" --bootstrap"), pod).toBe(pod === "tenure-0");
    }
  });

  it("says which file is missing, and that it must be mended first", () => {
    cpSync(join(directory, "tls"), join(directory, "partial"), { recursive: true });
    rmSync(join(directory, "partial/tenure-1.key"));
    expect(existsSync(join(directory, "partial/tenure-1.crt"))).toBe(true);
    expect(run("tenure-1", { TLS_DIR: join(directory, "partial") })).toMatchObject({
      status: 78,
      stderr: expect.stringContaining("tenure-1.key can't be read") as string,
    });
    expect(run(undefined)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("the name of the pod") as string,
    });
  });
});
