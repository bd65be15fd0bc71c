// All lines that a node serves: its site's own ones, and, where there is somebody who has them, those of other sites.

import { TenureError } from "../../core/kit/errors.ts";
import type { LineId, Page } from "../../core/mesh/model.ts";
import type { ConsistencyProof, InclusionProof } from "../../ports/events.ts";
import type { LineSource, MeshLines, OwnLineStatus, OwnLineView, SiteView } from "../../ports/mesh-lines.ts";
import type { OwnLine } from "./own-line.ts";

export interface LinesOptions {
  readonly own: OwnLine;
  /** Of other sites. */
  readonly foreign?: LineSource | undefined;
  /** The registered ones. */
  readonly sites: () => readonly SiteView[];
}

export class Lines implements MeshLines {
  readonly #options: LinesOptions;

  constructor(options: LinesOptions) {
    this.#options = options;
  }

  get publicKey(): string {
    return this.#options.own.publicKey;
  }

  own(): OwnLineView | null {
    return this.#options.own.view();
  }

  status(): OwnLineStatus {
    return this.#options.own.status();
  }

  sites(): readonly SiteView[] {
    return this.#options.sites();
  }

  lines(): readonly LineId[] {
    const { own, foreign } = this.#options;
    return [...own.lines(), ...(foreign?.lines() ?? [])];
  }

  has(line: LineId): boolean {
    const { own, foreign } = this.#options;
    return own.has(line) || (foreign?.has(line) ?? false);
  }

  size(line: LineId): number {
    return this.#of(line).size(line);
  }

  async checkpoint(line: LineId): Promise<string> {
    return this.#of(line).checkpoint(line);
  }

  async page(line: LineId, after: number): Promise<Page | null> {
    return this.#of(line).page(line, after);
  }

  async consistency(line: LineId, from: number, to: number): Promise<ConsistencyProof> {
    return this.#of(line).consistency(line, from, to);
  }

  async inclusion(line: LineId, sequence: number, size: number): Promise<InclusionProof> {
    return this.#of(line).inclusion(line, sequence, size);
  }

  #of(line: LineId): LineSource {
    const { own, foreign } = this.#options;
    const source = [own, foreign].find((one) => one?.has(line) ?? false);
    if (source === undefined) throw new TenureError("NOT_FOUND", `There is no line ${line} here.`);
    return source;
  }
}
