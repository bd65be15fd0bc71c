/**
 * One data directory, at the level of bytes. Nothing is durable before it is synced: appended bytes
 * before `fdatasync`, a created, renamed or removed name before `syncDirectory`.
 *
 * Every call carries a label, so that a fault can hit exactly one kind of call.
 * A rejected `fdatasync` means that the bytes may be lost although a later one succeeds (trap 23):
 * the caller must end the process, never retry.
 */
export interface Disk {
  list(label: string): Promise<string[]>;
  read(name: string, label: string): Promise<Uint8Array>;
  /** Without reading it. */
  sizeBytes(name: string, label: string): Promise<number>;
  /** Creates an empty file, or empties an existing one. */
  create(name: string, label: string): Promise<DiskFile>;
  /** Opens an existing file for appending at its end. */
  open(name: string, label: string): Promise<DiskFile>;
  rename(from: string, to: string, label: string): Promise<void>;
  remove(name: string, label: string): Promise<void>;
  syncDirectory(label: string): Promise<void>;
}

export interface DiskFile {
  readonly name: string;
  append(bytes: Uint8Array, label: string): Promise<void>;
  /**
   * Makes the file so long, with zeros after what was appended; later appends take their place, and a sync of those need
   * not make the file longer. The zeros are seen by `read`, and are as durable as appended bytes: after a crash any of them may be
   * missing. False: there was no room for all of them (some may be there), and appends go on as if none were.
   * Whoever opens the file again continues after the zeros, unless it cuts them off first.
   */
  reserve(sizeBytes: number, label: string): Promise<boolean>;
  /** Ends a reservation: the file then is so long, and no longer. */
  truncate(sizeBytes: number, label: string): Promise<void>;
  fdatasync(label: string): Promise<void>;
  close(): Promise<void>;
}
