/** What a watch gives is the same for clients and for electors. */
export { WatchedValues } from "../core/kit/watched-values.ts";
