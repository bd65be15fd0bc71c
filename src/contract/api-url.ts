// Where an API is reached: http://host:port, and nothing after it.

import { Type } from "typebox";
import { API_URL_LENGTH_MAX } from "./limits.ts";

/** A URL does not show the port that its scheme has anyway. */
const PORTS: Readonly<Record<string, string>> = { "http:": ":80", "https:": ":443" };

export const ApiUrl = Type.Refine(
  Type.String({ maxLength: API_URL_LENGTH_MAX }),
  isApiUrl,
  () => "must be http://host:port or https://host:port, without a path, a query or a password",
);

export function isApiUrl(value: string): boolean {
  const url = URL.parse(value);
  const port = url === null ? undefined : PORTS[url.protocol];
  if (url === null || port === undefined) return false;
  const plain = `${url.protocol}//${url.host}`;
  return [plain, plain + port].includes(value.replace(/\/$/, ""));
}
