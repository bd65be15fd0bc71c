// Certificates for tests: good ones by the authority that operators use, and forged ones by hand.

import { createPrivateKey, webcrypto } from "node:crypto";
import { createCa, issue, type KeyPair } from "../../src/drivers/pki/index.ts";
import { loadX509 } from "../../src/drivers/pki/x509.ts";
import type { PeerTls } from "../../src/drivers/wire/index.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const KEY = { name: "ECDSA", namedCurve: "P-256" };

export class TestAuthority {
  readonly ca: KeyPair;
  readonly trustDomain: string;

  private constructor(ca: KeyPair, trustDomain: string) {
    this.ca = ca;
    this.trustDomain = trustDomain;
  }

  static async make(trustDomain = "tenure"): Promise<TestAuthority> {
    return new TestAuthority(await createCa({ trustDomain, nowMs: Date.now() }), trustDomain);
  }

  /** One that was made elsewhere. */
  static of(ca: KeyPair, trustDomain = "tenure"): TestAuthority {
    return new TestAuthority(ca, trustDomain);
  }

  async node(nodeId: string, { agedDays = 0, trustDomain = this.trustDomain } = {}): Promise<PeerTls> {
    const identity = { trustDomain, kind: "server", name: nodeId } as const;
    const pair = await issue({ ca: this.ca, identity, days: 10, nowMs: Date.now() - agedDays * DAY_MS });
    return { ca: this.ca.cert, ...pair };
  }

  async operator(name: string): Promise<PeerTls> {
    const identity = { trustDomain: this.trustDomain, kind: "operator", name } as const;
    return { ca: this.ca.cert, ...(await issue({ ca: this.ca, identity, nowMs: Date.now() })) };
  }

  /** Signed by the authority, with any URIs in it. */
  async forged(uris: readonly string[]): Promise<PeerTls> {
    const x509 = await loadX509();
    const signingKey = await webcrypto.subtle.importKey(
      "pkcs8",
      createPrivateKey(this.ca.key).export({ type: "pkcs8", format: "der" }),
      KEY,
      false,
      ["sign"],
    );
    const keys = await webcrypto.subtle.generateKey(KEY, true, ["sign", "verify"]);
    const names = [
      { type: "dns" as const, value: "localhost" },
      ...uris.map((value) => ({ type: "url" as const, value })),
    ];
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: "01",
      subject: "CN=forged",
      issuer: new x509.X509Certificate(this.ca.cert).subjectName,
      notBefore: new Date(Date.now() - DAY_MS),
      notAfter: new Date(Date.now() + DAY_MS),
      signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
      signingKey,
      publicKey: keys.publicKey,
      extensions: [new x509.SubjectAlternativeNameExtension(names)],
    });
    const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
    const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" }).export({ type: "pkcs8", format: "pem" });
    return { ca: this.ca.cert, cert: certificate.toString("pem"), key };
  }
}
