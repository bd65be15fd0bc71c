import { expect, test } from "vitest";
import { WORDS } from "./failures.ts";

test.each([
  ["SELF_SIGNED_CERT_IN_CHAIN", /not trusted.*TENURE_SERVERS_CA_FILE.*"tls\.ca"/],
  [
    "ERR_OSSL_X509_KEY_VALUES_MISMATCH",
    /TENURE_SERVERS_CA_FILE, TENURE_SERVERS_CERT_FILE, TENURE_SERVERS_KEY_FILE.*belong together/,
  ],
  [
    "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED",
    /client certificate.*TENURE_SERVERS_CERT_FILE and TENURE_SERVERS_KEY_FILE/,
  ],
])("%s names the variables by which a command is given what it lacks", (code, words) => {
  const failure = WORDS.failed(Object.assign(new Error("x"), { code }), "https://n1:7401", false);
  expect(failure).toMatchObject({ code: "BACKEND_UNSUPPORTED", message: expect.stringMatching(words) });
});
