// A site that exists in the test alone, with real Ed25519 keys, and sends to a real server whatever a test wants it to.

import { generateKeyPairSync } from "node:crypto";
import type { Page, Ring } from "../../src/core/mesh/model.ts";
import { bytesOfHash, leafHash } from "../../src/core/events/index.ts";
import { eventHashOf } from "../../src/core/events/event.ts";
import { ringKeyOf, toBase64, withheldHash } from "../../src/core/mesh/proof/index.ts";
import { possessionText } from "../../src/core/mesh/registry/index.ts";
import { TestSite as Line } from "../../src/core/mesh/test-site.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { signerOf } from "../../src/drivers/system/signatures.ts";
import type { Signer } from "../../src/ports/signatures.ts";
import type { TenureAnswer, TenureNode } from "../servers/index.ts";
import { keyOf } from "./test-sites.ts";

export interface Outcome {
  readonly line: string;
  readonly accepted?: number;
  readonly duplicates?: number;
  readonly error?: string;
}

class RealLine extends Line {
  readonly #signer: Signer;

  constructor(ring: Ring, signer: Signer) {
    super(ring, systemDigest);
    this.#signer = signer;
  }

  override signer(): Signer {
    return this.#signer;
  }
}

export class Stranger {
  readonly id: string;
  readonly signer: Signer = signerOf(generateKeyPairSync("ed25519").privateKey);
  readonly ring: Ring;
  readonly line: Line;
  readonly #hub: Pick<TenureNode, "call">;

  constructor(id: string, hub: Pick<TenureNode, "call">) {
    this.id = id;
    this.#hub = hub;
    this.ring = { controller: id, generation: 1, author: id, keys: [ringKeyOf("n1", this.signer.publicKey)] };
    this.line = this.anotherHistory();
  }

  /** A line with the same keys, and of the same name where its ring is the site's, with nothing in it. */
  anotherHistory(ring = this.ring): Line {
    return new RealLine(ring, this.signer);
  }

  register(receiver: string): Promise<TenureAnswer> {
    return this.registerAs(this.id, receiver);
  }

  /** Under any id. */
  async registerAs(id: string, receiver = "hub"): Promise<TenureAnswer> {
    const url = "http://127.0.0.1:9";
    const signature = this.signer.sign(possessionText({ id, url, receiver }));
    const proof = { key: toBase64(this.signer.publicKey), signature: toBase64(signature) };
    const metadata = { line: this.line.line, ring: this.ring, proof };
    return this.call("/api/controllers/register", { id, url, name: id, metadata });
  }

  /** A first page of this one text, whatever it is, with a note that is valid for it. */
  signedAnyway(text: string): Page {
    const hash = eventHashOf(new TextEncoder().encode(text), systemDigest);
    const root = Buffer.from(leafHash(bytesOfHash(hash), systemDigest)).toString("hex");
    const { line } = this.line;
    const withheld = { after: 0, hash: withheldHash([], systemDigest) };
    return { line, after: 0, items: [text], checkpoint: this.line.sign({ line, size: 1, root, withheld }) };
  }

  call(path: string, body: object): Promise<TenureAnswer> {
    return this.#hub.call(path, { body, key: keyOf(this.id) });
  }

  /** With heads, so that the outcome of a single page is not the whole answer. */
  async send(...pages: readonly unknown[]): Promise<readonly Outcome[]> {
    const { status, body } = await this.call("/api/events/broadcast", { controller: this.id, pages, heads: [] });
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
    return body["pages"] as readonly Outcome[];
  }

  async show(...heads: readonly string[]): Promise<TenureAnswer> {
    return this.call("/api/events/broadcast", { controller: this.id, heads });
  }
}

/** A page with one of its items changed. */
export function withItem(page: Page, at: number, change: (text: string) => string): Page {
  return {
    ...page,
    items: page.items.map((item, place) => (place === at && typeof item === "string" ? change(item) : item)),
  };
}
