// The file of whoever asks a cluster: where it is, and with what one proves who one is. docs/reference/configuration.md lists the
// same fields, and a test compares. Pure: the file is read by the caller.

import { Type, type Static } from "typebox";
import { TenureError } from "../../core/kit/errors.ts";
import { URLS_MAX } from "../../core/kit/limits.ts";
import { KEY_BYTES_MAX, PATH_BYTES_MAX } from "../limits.ts";
import { oneOf, strict, text } from "../schema-kit.ts";
import { isApiUrl } from "../api-url.ts";
import { listMistakes, type Mistake, shape } from "../shape.ts";

const Urls = Type.Refine(
  Type.Unsafe<string | string[]>(Type.Unknown()),
  (value: unknown) => {
    const urls: unknown[] = Array.isArray(value) ? value : [value];
    return (
      urls.length > 0 && urls.length <= URLS_MAX && urls.every((url) => typeof url === "string" && areApiUrls(url))
    );
  },
  () => "must be http://host:port or https://host:port, or a list of those, without a path, a query or a password",
);

export const ClientConfigFile = strict({
  url: Type.Optional(Urls),
  key: Type.Optional(text(KEY_BYTES_MAX)),
  key_file: Type.Optional(text(PATH_BYTES_MAX)),
  ca_file: Type.Optional(text(PATH_BYTES_MAX)),
  cert_file: Type.Optional(text(PATH_BYTES_MAX)),
  client_key_file: Type.Optional(text(PATH_BYTES_MAX)),
  output: Type.Optional(oneOf("table", "json", "jsonl")),
});

export type ClientConfigFile = Static<typeof ClientConfigFile>;

const clientConfigShape = shape(ClientConfigFile, (field) => field !== "key");

/** `raw` is what the file at `path` says. Throws CONFIG_INVALID that names every wrong field. */
export function parseClientConfig(raw: unknown, path: string): ClientConfigFile {
  const checked = clientConfigShape.check(raw);
  const mistakes = [...(checked.ok ? [] : checked.mistakes), ...keyMistakes(raw)];
  if (checked.ok && mistakes.length === 0) return checked.value;
  throw new TenureError(
    "CONFIG_INVALID",
    listMistakes(`${path} is not valid:`, mistakes, "docs/reference/configuration.md lists every field."),
  );
}

function keyMistakes(raw: unknown): Mistake[] {
  if (typeof raw !== "object" || raw === null || !("key" in raw && "key_file" in raw)) return [];
  return [{ field: "key_file", message: "stands beside key: leave one of the two out" }];
}

function areApiUrls(urls: string): boolean {
  return urls.split(",").every((url) => isApiUrl(url.trim()));
}
