// deploy/kubernetes without a cluster: what kustomize makes of it, whether its parts fit together, and the pods' start script with the
// environment that the manifest gives them, against `tenure config check`. Nothing is applied anywhere.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parse as parseToml } from "smol-toml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { cleanEnvironment, imagePath } from "./test-container.ts";

const FOLDER = "deploy/kubernetes";
const PODS = ["tenure-0", "tenure-1", "tenure-2"];
/** Of the machine, not of npm. */
const [KUBECTL, TENURE] = ["kubectl", "tenure"];
const isThere = spawnSync(KUBECTL, ["version", "--client"]).status === 0;
if (!isThere) console.log("kubectl is not here: what kustomize makes of deploy/kubernetes is not looked at");

interface Container {
  readonly image: string;
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext: object;
  readonly resources: { readonly limits: object };
  readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string; readonly port: string } };
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: { readonly containers: readonly Container[]; readonly volumes: readonly { name: string }[] };
    };
    readonly selector: Readonly<Record<string, unknown>>;
    readonly serviceName: string;
    readonly replicas: number;
    readonly volumeClaimTemplates: readonly Manifest[];
    readonly clusterIP?: string;
    readonly jobTemplate?: Manifest;
  };
}

const text = ["services.yaml", "server.yaml", "agent.yaml", "backup.yaml"]
  .map((file) => readFileSync(join(FOLDER, file), "utf8"))
  .join("\n---\n");

function manifests(yaml: string): Manifest[] {
  const documents = parseAllDocuments(yaml);
  return documents.map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Manifest;
  });
}

function found(kind: string, name: string, from = manifests(text)): Manifest {
  const one = from.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  if (one === undefined) throw new Error(`there is no ${kind} ${name}`);
  return one;
}

const config = parseToml(readFileSync(join(FOLDER, "tenure.toml"), "utf8")) as unknown as {
  peers: Record<string, string>;
  bootstrap: { expect: string[] };
};

describe("the manifests", () => {
  const { spec } = found("StatefulSet", "tenure");
  const [container] = spec.template.spec.containers as [Container];

  it("give each pod of the set its place in the configuration that all share", () => {
    expect(spec).toMatchObject({ replicas: PODS.length, podManagementPolicy: "Parallel" });
    expect(config.bootstrap.expect).toEqual(PODS);
    expect(config.peers).toEqual(Object.fromEntries(PODS.map((pod) => [pod, `${pod}.${spec.serviceName}:7400`])));
    expect(container.ports).toEqual([
      { name: "peer", containerPort: 7400 },
      { name: "api", containerPort: 7401 },
    ]);
  });

  it("find each other before they are ready, and are disturbed one at a time, on different machines", () => {
    expect(found("Service", spec.serviceName).spec).toMatchObject({
      clusterIP: "None",
      publishNotReadyAddresses: true,
    });
    expect(found("PodDisruptionBudget", "tenure").spec).toMatchObject({ maxUnavailable: 1 });
    const { labels } = spec.template.metadata;
    for (const [kind, name] of [
      ["Service", "tenure-peers"],
      ["Service", "tenure"],
    ] as const)
      expect(labels, name).toMatchObject(found(kind, name).spec.selector);
    expect(labels).toMatchObject(found("PodDisruptionBudget", "tenure").spec.selector["matchLabels"] as object);
    expect(spec.template.spec).toMatchObject({
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: labels } },
          ],
        },
      },
    });
  });

  it("ask by probes that never depend on who leads", () => {
    const asked = (["startupProbe", "readinessProbe", "livenessProbe"] as const).map(
      (probe) => container[probe]?.httpGet,
    );
    expect(asked).toEqual(["/livez", "/readyz", "/livez"].map((path) => ({ path, port: "api", scheme: "HTTPS" })));
  });

  it.each([
    ["StatefulSet", "tenure"],
    ["Deployment", "tenure-agent"],
    ["CronJob", "tenure-backup"],
  ])("let the pods of %s %s do no more than they need, and mount what exists", (kind, name) => {
    const manifest = found(kind, name);
    const pod = (manifest.spec.jobTemplate ?? manifest).spec.template.spec;
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    });
    const volumes = [
      ...pod.volumes.map((one) => one.name),
      ...(manifest.spec.volumeClaimTemplates ?? []).map((one) => one.metadata.name),
    ];
    for (const { securityContext, resources, volumeMounts } of pod.containers) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(Object.keys(resources.limits)).toEqual(["memory"]);
      expect(volumes).toEqual(expect.arrayContaining(volumeMounts.map((one) => one.name)));
    }
  });

  it.skipIf(!isThere)(
    "become one whole with kustomize: the image, and the configuration under a name by its content",
    () => {
      const made = spawnSync(KUBECTL, ["kustomize", FOLDER], { encoding: "utf8" });
      expect(made).toMatchObject({ status: 0, stderr: "" });
      const all = manifests(made.stdout);
      const server = JSON.stringify(found("StatefulSet", "tenure", all));
      const [, generated = ""] = /"configMap":\{"name":"(tenure-config-\w+)"/.exec(server) ?? [];
      expect(found("ConfigMap", generated, all)).toHaveProperty("data", {
        "start.sh": readFileSync(join(FOLDER, "start.sh"), "utf8"),
        "tenure.toml": readFileSync(join(FOLDER, "tenure.toml"), "utf8"),
      });
      expect(server).toContain('"image":"registry.example.net/tenure:0.1.0"');
    },
  );
});

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
    for (const { name, value } of found("StatefulSet", "tenure").spec.template.spec.containers[0]!.env) {
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
