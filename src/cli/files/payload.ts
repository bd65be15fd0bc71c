// A job's payload, a value, or a transaction, that is in a file or comes through a pipe.

import { JOB_PAYLOAD_BYTES_MAX, VALUE_BYTES_MAX } from "../../core/kit/limits.ts";
import { createReadStream } from "node:fs";
import type { Json } from "../../client/index.ts";
import { UsageError } from "../kit/flags.ts";
import { jsonOf } from "../job/spec-flags.ts";
import { PAYLOAD_FILE_BYTES_MAX, TRANSACTION_FILE_BYTES_MAX, VALUE_FILE_BYTES_MAX } from "../limits.ts";

/** "-" is stdin. */
export async function readPayload(file: string): Promise<Json> {
  return await readJsonFile("--payload-file", file);
}

export async function readJsonFile(flag: string, file: string): Promise<Json> {
  const what = file === "-" ? `${flag} - (stdin)` : `${flag} ${file}`;
  const tooLarge = `a payload has at most ${JOB_PAYLOAD_BYTES_MAX} bytes`;
  return jsonOf(what, await contentsOf(what, file, PAYLOAD_FILE_BYTES_MAX, tooLarge));
}

/** From stdin. */
export async function readValue(): Promise<Json> {
  const what = "put - (stdin)";
  const tooLarge = `a value has at most ${VALUE_BYTES_MAX} bytes`;
  return jsonOf(what, await contentsOf(what, "-", VALUE_FILE_BYTES_MAX, tooLarge));
}

/** "-" is stdin. */
export async function readTransaction(file: string): Promise<Json> {
  const what = file === "-" ? "run - (stdin)" : `run ${file}`;
  const tooLarge = "all operations of a transaction have at most 512 KiB";
  return jsonOf(what, await contentsOf(what, file, TRANSACTION_FILE_BYTES_MAX, tooLarge));
}

async function contentsOf(what: string, file: string, bytesMax: number, tooLarge: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    const stream = file === "-" ? process.stdin : createReadStream(file);
    for await (const piece of stream as AsyncIterable<Uint8Array>) {
      pieces.push(piece);
      length += piece.length;
      if (length > bytesMax) throw new UsageError(`${what} is too large: ${tooLarge}`);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(pieces));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UsageError(`${what} can't be read: ${code === "ENOENT" ? "there is no such file" : message}`);
  }
}
