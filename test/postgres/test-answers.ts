// Another answer in place of the one that says that a transaction was committed: what servers and poolers say that can't be run
// here. For a proxy's `rewrite`, so the length stays.

interface Said {
  readonly sqlstate: string;
  readonly severity: string;
}

/** ReadyForQuery, outside of a transaction: the last message of an answer. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
/** COMMIT of `term.tx`, and the verdict of `tenure_log_append`. */
const COMMITTED = ["COMMIT\0", "taken\0"];

/** Undefined where the chunk is no answer to a commit. The session goes on afterwards, as far as the answer says. */
export function commitAnswered(chunk: Buffer, { sqlstate, severity }: Said): Buffer | undefined {
  const end = chunk.length - READY.length;
  if (!COMMITTED.some((text) => chunk.includes(text)) || !chunk.subarray(end).equals(READY)) return undefined;
  const fields = `S${severity}\0C${sqlstate}\0M`;
  const fill = end - 1 - 4 - fields.length - 2;
  if (fill < 0) throw new Error("this answer is too short for an error in its place");
  const error = Buffer.alloc(end);
  error.write("E", 0);
  error.writeInt32BE(end - 1, 1);
  error.write(`${fields}${"-".repeat(fill)}\0\0`, 5, "latin1");
  return Buffer.concat([error, READY]);
}
