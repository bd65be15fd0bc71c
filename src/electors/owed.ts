// What must not stay at a remote backend: leases and sessions of tries that were lost, given up or never answered, and of holds that
// were given up. Each is paid off in the background, and for sure before the next try: `settle` rejects while one of them may live.
// There are never many, because each try begins with settling.

/** Ends one of them for good; `detail` is what was known of it. */
type Pay<Detail> = (name: string, detail: Detail, signal: AbortSignal) => Promise<void>;

export class Owed<Detail> {
  readonly #payOff: Pay<Detail>;
  readonly #life: AbortSignal;
  readonly #owed = new Map<string, Detail>();

  constructor(payOff: Pay<Detail>, life: AbortSignal) {
    this.#payOff = payOff;
    this.#life = life;
  }

  owe(name: string, detail: Detail): void {
    this.#owed.set(name, detail);
    this.#pay(name, detail, this.#life).catch(() => undefined);
  }

  async settle(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#owed].map(([name, detail]) => this.#pay(name, detail, signal)));
  }

  async #pay(name: string, detail: Detail, signal: AbortSignal): Promise<void> {
    await this.#payOff(name, detail, signal);
    this.#owed.delete(name);
  }
}
