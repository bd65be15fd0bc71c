import { expect, it } from "vitest";
import { isApiUrl } from "./api-url.ts";

it.each([
  "http://a",
  "http://a:1",
  "https://n1.example:7401/",
  "http://[::1]:7401",
  "http://a:80",
  "https://a:443/",
  "http://a:443",
])("%s is where an API may be reached", (url) => expect(isApiUrl(url)).toBe(true));

// The last ones end as an address with the scheme's own port does.
it.each([
  "",
  "a:1",
  "ftp://a:1",
  "http://a/b",
  "http://a?b",
  "http://a#b",
  "http://u:p@a",
  "http://A:1",
  " http://a:1",
  "http://a:1\n",
  "http://a/b:80",
  "http://a?b:443",
  "http://u:p@a:80",
  "https://u@a:443/",
  "http://a:1/:80",
])("%j is none", (url) => expect(isApiUrl(url)).toBe(false));
