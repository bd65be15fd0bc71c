// Whether the node in this container is ready: exit 0 or 1. It asks /readyz, which never depends on who leads. The
// certificate is not checked: the question goes to this very container, and it carries no secret.
//
//   HEALTH_URL   what to ask; default https://127.0.0.1:7401/readyz

import { writeSync } from "node:fs";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

const TIMEOUT_MS = 4_000;
const url = process.env.HEALTH_URL || "https://127.0.0.1:7401/readyz";

const request = url.startsWith("https:") ? requestHttps : requestHttp;
const asked = request(url, { rejectUnauthorized: false, timeout: TIMEOUT_MS }, (answer) => {
  answer.resume();
  end(answer.statusCode === 200 ? 0 : 1, `${url} answered ${answer.statusCode}`);
});
asked.once("timeout", () => end(1, `${url} did not answer within ${TIMEOUT_MS} ms`));
asked.once("error", (error) => end(1, `${url}: ${error.message}`));
asked.end();

function end(code, text) {
  writeSync(1, `${text}\n`);
  process.exit(code);
}
