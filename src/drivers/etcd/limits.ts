// The bounds of what is read from etcd.

export const ETCD_ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** A watch's message carries one value, at most 1.5 MiB as etcd is shipped, and base64 makes that 2 MiB. */
export const WATCH_LINE_BYTES_MAX = 4 * 1024 * 1024;
