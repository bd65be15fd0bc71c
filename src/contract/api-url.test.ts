// What is an API's URL: nothing but the protocol, the host and the port.

import { expect, it } from "vitest";
import { isApiUrl } from "./api-url.ts";

it.each([
  ["http://a", true],
  ["http://a:7401", true],
  ["https://a:7401/", true],
  ["http://a:80", true],
  ["https://a:443", true],
  ["http://a:443", true],
  ["https://[::1]:443/", true],
  ["https://u:p@a:443", false],
  ["https://a/x:443", false],
  ["http://a?x=:80", false],
  ["https://a:443:443", false],
  ["https://a#:443", false],
  ["ftp://a:80", false],
  ["a:443", false],
  ["", false],
])("%s: %s", (url, is) => expect(isApiUrl(url)).toBe(is));
