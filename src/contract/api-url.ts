// Where an API is reached: http://host:port, and nothing after it.

import { Type } from "typebox";
import { API_URL_LENGTH_MAX } from "./limits.ts";

export const ApiUrl = Type.Refine(
  Type.String({ maxLength: API_URL_LENGTH_MAX }),
  isApiUrl,
  () => "must be http://host:port or https://host:port, without a path, a query or a password",
);

export function isApiUrl(value: string): boolean {
  const url = URL.parse(value);
  if (url === null || !/^https?:$/.test(url.protocol)) return false;
  return `${url.protocol}//${url.host}` === value.replace(/\/$/, "") || /:(80|443)\/?$/.test(value);
}
