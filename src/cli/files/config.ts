// A configuration file as it is read: its text, bounded, and the value in it. A pipe or a device may stand for a file.

import { closeSync, openSync, readSync } from "node:fs";
import { TenureError } from "../../core/kit/errors.ts";
import { CONFIG_FILE_BYTES_MAX } from "../limits.ts";
import { parseConfigText } from "./text.ts";

/** Throws CONFIG_INVALID with the file's name; `source` is the flag or variable that named it. */
export function readConfigFile(path: string, source?: string): unknown {
  return parseConfigText(path, textOf(path, source === undefined ? path : `${source}: ${path}`));
}

function textOf(path: string, name: string): string {
  const bytes = bytesOf(path, name);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new TenureError("CONFIG_INVALID", `${name} is not text: expected UTF-8, found other bytes.`, {
      cause: error,
    });
  }
}

function bytesOf(path: string, name: string): Buffer {
  const buffer = Buffer.alloc(CONFIG_FILE_BYTES_MAX + 1);
  let length = 0;
  try {
    const file = openSync(path, "r");
    try {
      for (let read = -1; read !== 0 && length < buffer.length; length += read) {
        read = readSync(file, buffer, length, buffer.length - length, null);
      }
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new TenureError("CONFIG_INVALID", `${name} can't be read: ${whyOf(error)}.`, { cause: error });
  }
  if (length > CONFIG_FILE_BYTES_MAX) {
    throw new TenureError(
      "CONFIG_INVALID",
      `${name} is too large: a configuration has at most ${CONFIG_FILE_BYTES_MAX} bytes.`,
    );
  }
  return buffer.subarray(0, length);
}

function whyOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ENOENT":
      return "there is no such file";
    case "EACCES":
      return "this user may not";
    case "EISDIR":
      return "it is a directory, and a file is expected";
    default:
      return message;
  }
}
