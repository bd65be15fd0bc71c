// Known mistakes, planted into every node of a run of `chaos mesh`: the harness must report each of them.

import type { Edit } from "../../src/sim/mutants/patch.ts";

export const MESH_PLANTS: Readonly<Record<string, readonly Edit[]>> = {
  /** A page with a signature of no key is taken, if the name of the key is right. */
  "signature-skipped": [
    {
      file: "core/mesh/proof/note.ts",
      find: "!tools.verify(publicKey, read.signed, read.signature)",
      replace: "!tools.verify(publicKey, read.signed, read.signature) && tools === null",
    },
  ],
  /** Two histories of one site are seen, and nobody says so. */
  "fork-unnoticed": [
    {
      file: "controller/mesh/mesh.ts",
      find: "forked: (evidence) => void this.#word.forked(evidence).catch((error: unknown) => this.#lost(error)),",
      replace: "forked: () => undefined,",
    },
  ],
};
