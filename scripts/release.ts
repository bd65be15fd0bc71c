// Whether the repository may be released under a tag: `node scripts/release.ts v0.2.0` names what is missing, and exits with 1. The
// release workflow runs it before anything is built (docs/releasing.md).

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Files that name the release: what they must contain, with the version for V. */
const NAMED: Readonly<Record<string, string>> = {
  "deploy/docker/Dockerfile": "tenure:V ",
  "deploy/docker/compose.yaml": "image: tenure:V\n",
  "deploy/kubernetes/kustomization.yaml": "newTag: V }",
  "docs/deploy.md": "tenure-server-V.tgz",
  "docs/server.md": "tenure-server-V.tgz",
  "packages/tenure-server/README.md": "tenure-server-V.tgz",
};

interface Manifest {
  readonly version: string;
  readonly repository?: unknown;
}

/** In the order in which they are to be fixed; none where the release may be made. */
export function missingFor(tag: string, root: string): string[] {
  const [, version] = /^v(\d+\.\d+\.\d+)$/.exec(tag) ?? [];
  if (version === undefined) return [`${tag} is no tag of a release, such as v0.2.0`];
  const read = (file: string): string => (existsSync(join(root, file)) ? readFileSync(join(root, file), "utf8") : "");
  const manifests = ["package.json", "packages/tenure-server/package.json", "package-lock.json"].flatMap((file) => {
    const manifest = JSON.parse(read(file)) as Manifest;
    const wrong = manifest.version === version ? [] : [`${file} has the version ${manifest.version}`];
    const isWhole = file === "package-lock.json" || manifest.repository !== undefined;
    return isWhole ? wrong : [...wrong, `${file} has no repository, which provenance needs`];
  });
  const names = Object.entries(NAMED).flatMap(([file, text]) => {
    const wanted = text.replace("V", version);
    return read(file).includes(wanted) ? [] : [`${file} does not contain "${wanted.trim()}"`];
  });
  const stored = ["frames.jsonl", "nodes.json.gz", "answers.json.gz"].map((name) => `test/compat/${version}/${name}`);
  const heading = new RegExp(`^## ${version.replaceAll(".", "\\.")} \\(\\d{4}-\\d{2}-\\d{2}\\)$`, "m");
  return [
    ...manifests,
    ...names,
    ...(heading.test(read("CHANGELOG.md")) ? [] : [`CHANGELOG.md has no heading "## ${version} (date)"`]),
    ...stored.filter((file) => !existsSync(join(root, file))).map((file) => `${file} does not exist`),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const missing = missingFor(process.argv[2] ?? "", fileURLToPath(new URL("..", import.meta.url)));
  for (const what of missing) console.error(`release: ${what}`);
  if (missing.length === 0) console.log(`release: ${process.argv[2]} may be made`);
  process.exitCode = missing.length === 0 ? 0 : 1;
}
