// What a node is started with, and may change between two lives: where it is reached, whose log lies in its directory, and of which island it is.

export class Places {
  readonly #endpoints = new Map<string, string>();
  readonly #logs = new Map<string, number>();
  readonly #islands = new Map<string, number>();
  readonly #movesOf = new Map<string, number>();
  #moves = 0;

  constructor(names: readonly string[]) {
    for (const name of names) this.#endpoints.set(name, name);
  }

  endpointOf(name: string): string {
    return this.#endpoints.get(name) ?? name;
  }

  /** Who answers there; undefined: nobody, any more. */
  at(endpoint: string): string | undefined {
    return [...this.#endpoints].find(([, place]) => place === endpoint)?.[0];
  }

  /** To an address that nobody had before; or the two change places. */
  move(name: string, other?: string): void {
    const [from, to] = [
      this.endpointOf(name),
      other === undefined ? `${name}.${++this.#moves}` : this.endpointOf(other),
    ];
    this.#endpoints.set(name, to);
    if (other !== undefined) this.#endpoints.set(other, from);
    for (const one of [name, other]) if (one !== undefined) this.#movesOf.set(one, this.movesOf(one) + 1);
  }

  /** How often it moved. */
  movesOf(name: string): number {
    return this.#movesOf.get(name) ?? 0;
  }

  /** The incarnation of the log. */
  logOf(name: string): string {
    return (this.#logs.get(name) ?? 1).toString(16);
  }

  /** The log was set aside, or its disk was lost. */
  newLog(name: string): void {
    this.#logs.set(name, (this.#logs.get(name) ?? 1) + 1);
  }

  backendHashOf(name: string): string {
    return `island-${name}-${this.#islands.get(name) ?? 1}`;
  }

  /** It was recovered or restored: a cluster with another id. */
  newIsland(name: string): void {
    this.#islands.set(name, (this.#islands.get(name) ?? 1) + 1);
  }
}
