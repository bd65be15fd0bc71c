// deploy/kubernetes as tests read it: its documents, by kind and name. Kubernetes reads YAML 1.1, where 0440 is an octal number.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { parseAllDocuments } from "yaml";

export const FOLDER = "deploy/kubernetes";
export const PODS = ["tenure-0", "tenure-1", "tenure-2"];
export const FILES = ["services.yaml", "server.yaml", "agent.yaml", "backup.yaml"];

export interface Container {
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly Variable[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext: object;
  readonly resources: { readonly limits: object };
  readonly [probe: `${string}Probe`]: {
    readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string };
  };
}
export interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly configMapKeyRef?: { readonly name: string; readonly key: string; readonly optional?: boolean };
    readonly fieldRef?: { readonly fieldPath: string };
  };
}
export interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly secretName: string; readonly defaultMode: number };
  readonly persistentVolumeClaim?: { readonly claimName: string };
  readonly emptyDir?: object;
}
export interface Pod {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly containers: readonly Container[];
    readonly volumes: readonly Volume[];
    readonly serviceAccountName?: string;
    readonly automountServiceAccountToken?: boolean;
  };
}
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: Pod;
    readonly selector: Readonly<Record<string, unknown>>;
    readonly serviceName: string;
    readonly replicas: number;
    readonly volumeClaimTemplates?: readonly Manifest[];
    readonly clusterIP?: string;
    readonly ports?: readonly { readonly port: number; readonly targetPort: string }[];
    readonly podSelector?: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly ingress?: readonly { readonly ports: readonly { readonly port: string }[] }[];
    readonly jobTemplate?: { readonly spec: { readonly template: Pod } };
  };
}

export function manifests(yaml: string): Manifest[] {
  const documents = parseAllDocuments(yaml, { version: "1.1" });
  return documents.map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Manifest;
  });
}

export const ALL = manifests(FILES.map((file) => readFileSync(join(FOLDER, file), "utf8")).join("\n---\n"));

export function found(kind: string, name: string, from: readonly Manifest[] = ALL): Manifest {
  const one = from.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  if (one === undefined) throw new Error(`there is no ${kind} ${name}`);
  return one;
}

/** What starts pods, with the pod. */
export function podsOf(from: readonly Manifest[] = ALL): [Manifest, Pod][] {
  return from.flatMap((manifest): [Manifest, Pod][] => {
    const { template, jobTemplate } = manifest.spec;
    const pod = jobTemplate?.spec.template ?? template;
    return pod === undefined ? [] : [[manifest, pod]];
  });
}
