// All lines that a node serves: its site's own ones, and, where there is somebody who has them, those of other sites.

import { TenureError } from "../../core/kit/errors.ts";
import type { LineId, Page } from "../../core/mesh/model.ts";
import { controllerOf } from "../../core/mesh/proof/index.ts";
import type { Possession, PossessionProof } from "../../core/mesh/registry/index.ts";
import type { ConsistencyProof, InclusionProof } from "../../ports/events.ts";
import type { Request } from "../../ports/jobs.ts";
import type {
  ForkView,
  GateView,
  LineSource,
  MeshLines,
  OwnLineStatus,
  OwnLineView,
  SiteView,
} from "../../ports/mesh/lines.ts";
import type { OwnLine } from "./own/own-line.ts";
import type { SigningGate } from "./own/signing-gate.ts";

export interface LinesOptions {
  readonly own: OwnLine;
  readonly gate: Pick<SigningGate, "view" | "resume">;
  /** Of other sites. */
  readonly foreign?: LineSource | undefined;
  /** The registered ones. */
  readonly sites: () => readonly SiteView[];
  /** Lines that have forked: the sequence of the own event that proves it. */
  readonly forks: () => readonly (readonly [LineId, number])[];
  readonly leftAt: () => number | null;
  readonly evidenceAt: (sequence: number) => Promise<ForkView["evidence"]>;
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

  prove(possession: Possession): Promise<PossessionProof> {
    return this.#options.own.prove(possession);
  }

  status(): OwnLineStatus {
    return this.#options.own.status();
  }

  leftAt(): number | null {
    return this.#options.leftAt();
  }

  gate(): GateView {
    return this.#options.gate.view();
  }

  async forks(site: string | null): Promise<readonly ForkView[]> {
    const { forks, evidenceAt } = this.#options;
    const asked = forks().filter(([line]) => site === null || controllerOf(line) === site);
    return Promise.all(
      asked.map(async ([line, sequence]) => ({ line, sequence, evidence: await evidenceAt(sequence) })),
    );
  }

  resume(request: Request, isNewLine: boolean): Promise<GateView> {
    return this.#options.gate.resume(request, isNewLine);
  }

  sites(): readonly SiteView[] {
    return this.#options.sites();
  }

  /** Without the own ones while nothing of them is given out. */
  lines(): readonly LineId[] {
    const { own, foreign } = this.#options;
    return [...(own.held === null ? own.lines() : []), ...(foreign?.lines() ?? [])];
  }

  has(line: LineId): boolean {
    const { own, foreign } = this.#options;
    return own.has(line) || (foreign?.has(line) ?? false);
  }

  size(line: LineId): number {
    // Of a line that others have and this site does not, there is nothing: links are shown and compared before its first page is here.
    return this.#find(line)?.size(line) ?? 0;
  }

  async checkpoint(line: LineId): Promise<string> {
    return this.#of(line).checkpoint(line);
  }

  async page(line: LineId, after: number): Promise<Page | null> {
    return this.#of(line).page(line, after);
  }

  async pages(line: LineId, after: number): Promise<readonly Page[]> {
    return this.#of(line).pages(line, after);
  }

  async consistency(line: LineId, from: number, to: number): Promise<ConsistencyProof> {
    return this.#of(line).consistency(line, from, to);
  }

  async inclusion(line: LineId, sequence: number, size: number): Promise<InclusionProof> {
    return this.#of(line).inclusion(line, sequence, size);
  }

  #of(line: LineId): LineSource {
    const source = this.#find(line);
    if (source === undefined) throw new TenureError("NOT_FOUND", `There is no line ${line} here.`);
    return source;
  }

  #find(line: LineId): LineSource | undefined {
    const { own, foreign } = this.#options;
    return [own, foreign].find((one) => one?.has(line) ?? false) ?? undefined;
  }
}
