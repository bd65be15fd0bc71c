// deploy/kubernetes without a cluster: whether every field is one of Kubernetes, what kustomize makes of it, and whether its parts fit
// together and with what docs/deploy.md creates by hand. Nothing is applied anywhere: kubectl checks no manifest without a server.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parse as parseToml } from "smol-toml";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readAgentStartFlags } from "../../src/cli/agent/start-flags.ts";
import { ROUTES } from "../../src/contract/index.ts";
import { problemOf } from "../runbooks/documents.ts";
import { ALL, type Container, FILES, FOLDER, found, type Manifest, manifests, PODS, podsOf } from "./test-manifests.ts";

/** Of the machine, not of npm. */
const KUBECTL = "kubectl";
const isThere = spawnSync(KUBECTL, ["version", "--client"]).status === 0;
if (!isThere) console.log("kubectl is not here: what kustomize makes of deploy/kubernetes is not looked at");

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

describe("kubernetes-types, as a compiler reads them", () => {
  const PLANTED = [
    ['"livenessProbe"', '"livenesProbe"', "livenesProbe"],
    ['"replicas":3', '"replicas":"3"', "'string' is not assignable to type 'number'"],
    ['"serviceName":', '"service":', "service"],
    ['"httpGet":{"path"', '"httpGet":{"paths"', "paths"],
  ] as const;
  const server = JSON.stringify(found("StatefulSet", "tenure"));
  let errors: readonly string[];

  /** In a literal a field that its type does not have is an error, at any depth; so is one that is missing, or has another type. */
  beforeAll(() => {
    const directory = mkdtempSync(join(tmpdir(), "tenure-manifests-"));
    symlinkSync(resolve("test/node_modules"), join(directory, "node_modules"));
    const planted = PLANTED.map(([find, replace]) => JSON.parse(server.replace(find, replace)) as Manifest);
    const lines = [...ALL, ...planted].map((one, at) => {
      const group = one.apiVersion === "v1" ? "core/v1" : one.apiVersion.replace(".k8s.io", "");
      const type = `import("kubernetes-types/${group}").${one.kind}`;
      return `export const m${at} = ${JSON.stringify(one)} satisfies ${type};`;
    });
    writeFileSync(join(directory, "all.ts"), lines.join("\n"));
    const options = {
      strict: true,
      noEmit: true,
      module: "ESNext",
      moduleResolution: "Bundler",
      lib: ["ES2015"],
      types: [],
    };
    const config = { compilerOptions: { ...options, skipLibCheck: true }, files: ["all.ts"] };
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config));
    const { stdout } = spawnSync(resolve("node_modules/.bin/tsc"), ["-p", "."], { cwd: directory, encoding: "utf8" });
    errors = lines.map((_, at) =>
      stdout
        .split("\n")
        .filter((line) => line.startsWith(`all.ts(${at + 1},`))
        .join(),
    );
    rmSync(directory, { recursive: true });
  });

  it("know every field of every manifest", () => {
    expect(ALL.length).toBeGreaterThan(7);
    expect(errors.slice(0, ALL.length)).toEqual(ALL.map(() => ""));
  });

  it.each(PLANTED)("would not know %s as %s", (find, _replace, why) => {
    expect(server).toContain(find);
    expect(errors[ALL.length + PLANTED.findIndex(([one]) => one === find)]).toContain(why);
  });
});

/** What docs/deploy.md has a person create, by kind. */
function createdByHand(kind: string): string[] {
  const created = readFileSync("docs/deploy.md", "utf8").matchAll(
    /kubectl create (?:secret generic|configmap) ([\w-]+)/g,
  );
  return [...created].filter(([line]) => line.includes(kind)).map(([, name = ""]) => name);
}

/** References of pods, services and policies that lead nowhere. */
function danglingIn(all: readonly Manifest[], kustomization: Kustomization): string[] {
  const names = (kind: string): string[] => all.filter((one) => one.kind === kind).map((one) => one.metadata.name);
  const maps = [...createdByHand("configmap"), ...kustomization.configMapGenerator.map(({ name }) => name)];
  const secrets = createdByHand("secret");
  const wanted = podsOf(all).flatMap(
    ([
      {
        metadata,
        spec: { volumeClaimTemplates = [] },
      },
      { spec },
    ]) => {
      const claims = volumeClaimTemplates.map((one) => one.metadata.name);
      const volumes = spec.volumes.map(({ name }) => name);
      const references = [
        ...spec.volumes.flatMap(({ configMap }) =>
          configMap && !maps.includes(configMap.name) ? [configMap.name] : [],
        ),
        ...spec.volumes.flatMap(({ secret }) =>
          secret && !secrets.includes(secret.secretName) ? [secret.secretName] : [],
        ),
        ...spec.volumes.flatMap(({ persistentVolumeClaim: claim }) =>
          claim && !names("PersistentVolumeClaim").includes(claim.claimName) ? [claim.claimName] : [],
        ),
        ...spec.containers.flatMap(({ volumeMounts }) =>
          volumeMounts.map(({ name }) => name).filter((name) => ![...volumes, ...claims].includes(name)),
        ),
        ...volumes.filter(
          (name) => !spec.containers.some((one) => one.volumeMounts.some((mount) => mount.name === name)),
        ),
        ...spec.containers.flatMap(({ env = [] }) =>
          env.flatMap(({ valueFrom }) => {
            const map = valueFrom?.configMapKeyRef;
            return map && !maps.includes(map.name) ? [map.name] : [];
          }),
        ),
        ...(spec.serviceAccountName === undefined ? [] : [spec.serviceAccountName]),
      ];
      return references.map((name) => `${metadata.name}: ${name}`);
    },
  );
  return [...wanted, ...portsThatNobodyHas(all)];
}

function portsThatNobodyHas(all: readonly Manifest[]): string[] {
  const selected = (selector: Readonly<Record<string, unknown>>): Container[] =>
    podsOf(all)
      .filter(([, { metadata }]) => Object.entries(selector).every(([key, value]) => metadata.labels[key] === value))
      .flatMap(([, { spec }]) => spec.containers);
  const missing = (selector: Readonly<Record<string, unknown>>, port: string): boolean =>
    !selected(selector).some(({ ports = [] }) => ports.some(({ name }) => name === port));
  const services = all.filter(({ kind }) => kind === "Service");
  const policies = all.filter(({ kind }) => kind === "NetworkPolicy");
  const probes = podsOf(all).flatMap(([{ metadata }, { spec }]) =>
    spec.containers.flatMap((container) =>
      PROBES.flatMap((probe) => {
        const asked = container[probe]?.httpGet.port;
        const has = container.ports?.some(({ name }) => name === asked) ?? false;
        return asked === undefined || has ? [] : [`${metadata.name}: ${asked}`];
      }),
    ),
  );
  return [
    ...probes,
    ...services.flatMap(({ metadata, spec: { selector, ports = [] } }) =>
      ports
        .filter(({ targetPort }) => missing(selector, targetPort))
        .map(({ targetPort }) => `${metadata.name}: ${targetPort}`),
    ),
    ...policies.flatMap(({ metadata, spec: { podSelector, ingress = [] } }) =>
      ingress
        .flatMap(({ ports }) => ports)
        .filter(({ port }) => missing(podSelector?.matchLabels ?? {}, port))
        .map(({ port }) => `${metadata.name}: ${port}`),
    ),
  ];
}

const PROBES = ["startupProbe", "readinessProbe", "livenessProbe"] as const;

interface Kustomization {
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string }[];
  readonly configMapGenerator: readonly { readonly name: string; readonly files: readonly string[] }[];
}
const kustomization = parse(readFileSync(join(FOLDER, "kustomization.yaml"), "utf8")) as Kustomization;

describe("the whole", () => {
  it("is every file of the folder, and each is used", () => {
    expect(kustomization.resources.toSorted()).toEqual(FILES.toSorted());
    const used = [...kustomization.resources, ...kustomization.configMapGenerator.flatMap(({ files }) => files)];
    expect(readdirSync(FOLDER).toSorted()).toEqual([...used, "kustomization.yaml"].toSorted());
    for (const [, { spec }] of podsOf())
      for (const { image } of spec.containers) expect(kustomization.images.map(({ name }) => name)).toContain(image);
  });

  it("refers to nothing that does not exist, here or in docs/deploy.md", () => {
    expect(createdByHand("secret").toSorted()).toEqual(["tenure-agent-tls", "tenure-backup-tls", "tenure-tls"]);
    expect(danglingIn(ALL, kustomization)).toEqual([]);
  });

  it.each([
    ['"tenure-agent-tls"', '"agent-tls"', "tenure-agent: agent-tls"],
    ['"claimName":"tenure-backup"', '"claimName":"backups"', "tenure-backup: backups"],
    ['"name":"tenure-config"', '"name":"tenure-configs"', "tenure: tenure-configs"],
    ['"name":"tenure-bootstrap"', '"name":"bootstrap"', "tenure: bootstrap"],
    ['"targetPort":"peer"', '"targetPort":"peers"', "tenure-peers: peers"],
    ['"path":"/readyz","port":"api"', '"path":"/readyz","port":"https"', "tenure: https"],
    ['{"name":"run","mountPath"', '{"name":"runs","mountPath"', "tenure: runs"],
  ])("would not find %s as %s", (find, replace, what) => {
    const text = JSON.stringify(ALL);
    expect(text).toContain(find);
    expect(danglingIn(JSON.parse(text.replace(find, replace)) as Manifest[], kustomization)).toContain(what);
  });

  it("asks routes that answer without a key, and gives commands that are accepted", () => {
    const open = Object.values(ROUTES)
      .filter(({ role }) => role === "public")
      .map(({ path }) => path);
    for (const [, { spec }] of podsOf()) {
      for (const container of spec.containers) {
        for (const probe of PROBES) {
          const asked = container[probe]?.httpGet;
          if (asked !== undefined) expect(open).toContain(asked.path);
        }
        if (container.args !== undefined) expect(problemOf(withoutEquals(container.args))).toBeUndefined();
      }
    }
    const [agent] = found("Deployment", "tenure-agent").spec.template.spec.containers;
    const args = agent!.args!.slice(2).map((arg) => arg.replace("$(POD_NAME)", "tenure-agent-x"));
    expect(readAgentStartFlags(args, {})).toMatchObject({ name: "tenure-agent-x", capacity: 4 });
  });

  it("gives clients the nodes by names that the pods have, in the certificates that docs/deploy.md makes", () => {
    const { serviceName } = found("StatefulSet", "tenure").spec;
    const urls = PODS.map((pod) => `https://${pod}.${serviceName}:7401`).join(",");
    const given = podsOf().flatMap(([, { spec }]) =>
      spec.containers.flatMap(({ env = [] }) => env.filter(({ name }) => name === "TENURE_URL")),
    );
    expect(given).toEqual([urls, urls].map((value) => ({ name: "TENURE_URL", value })));
    expect(readFileSync("docs/deploy.md", "utf8")).toContain(`--host tenure-$n.${serviceName},`);
  });

  it("lets the user of the pods, and nobody else in them, read private keys", () => {
    const modes = podsOf().flatMap(([, { spec }]) => spec.volumes.flatMap(({ secret }) => secret?.defaultMode ?? []));
    expect(modes).toEqual([0o440, 0o440, 0o440]);
  });
});

/** `--name=x` as the two words that the table of commands knows. */
function withoutEquals(args: readonly string[]): string[] {
  return args.flatMap((arg) =>
    /^--[\w-]+=/.test(arg) ? [arg.slice(0, arg.indexOf("=")), arg.slice(arg.indexOf("=") + 1)] : [arg],
  );
}
