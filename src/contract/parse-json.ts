/** What comes over the wire is read by clients as it is by servers. */
export { parseJson } from "../core/kit/parse-json.ts";
