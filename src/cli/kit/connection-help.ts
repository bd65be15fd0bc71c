// The lines of help that all commands share which ask a cluster's servers (connection/connection.ts reads the flags).

import { API_LISTEN_DEFAULT } from "../../contract/names.ts";
import { describe, kindsOf } from "./description.ts";
import { LIST_OUTPUTS } from "./output.ts";

export const URL_DEFAULT = `http://${API_LISTEN_DEFAULT}`;

const SERVERS = `  --url URL[,URL…]   any of the servers, better all (or TENURE_URL; default ${URL_DEFAULT})
  --key KEY          the API key (better TENURE_API_KEY, or TENURE_API_KEY_FILE with a file that holds it)
  --ca FILE          the authority that signed the servers' certificates, as PEM (or TENURE_SERVERS_CA_FILE)
  --cert FILE        a client certificate, as PEM; with --client-key, instead of a key (or TENURE_SERVERS_CERT_FILE)
  --client-key FILE  its private key, as PEM (or TENURE_SERVERS_KEY_FILE)
` as const;
const OUTPUT = `  -o table|json      for people (default), or one JSON object on a line; --json is -o json
` as const;
const LIST_OUTPUT =
  `  -o table|json|jsonl  for people (default), one JSON object on a line, or one for each of many; --json is -o json
` as const;
const REST = `  --help             this text

Without flags and variables, ~/.config/tenure/config.toml counts, or the file that TENURE_CONFIG names: url, key or key_file,
ca_file, cert_file, client_key_file, output (\`tenure config show --client\`).
` as const;

export const CONNECTION_HELP = `${SERVERS}${OUTPUT}${REST}` as const;
export const LISTING_HELP = `${SERVERS}${LIST_OUTPUT}${REST}` as const;
/** Of a command that prints nothing but its log. */
export const QUIET_HELP = `${SERVERS}${REST}` as const;
/** Of commands of which one verb lists; that one takes jsonl too. */
export const LISTS = { "-o": LIST_OUTPUTS } as const;

export const CONNECTION_KINDS = kindsOf(describe("", "", CONNECTION_HELP));
export type ConnectionFlag = keyof typeof CONNECTION_KINDS;

/** The flags that are a command's own. */
export function ownOf<Flag extends string>(kinds: Readonly<Record<Flag, unknown>>): Exclude<Flag, ConnectionFlag>[] {
  return (Object.keys(kinds) as Flag[]).filter(
    (flag): flag is Exclude<Flag, ConnectionFlag> => !Object.hasOwn(CONNECTION_KINDS, flag),
  );
}
