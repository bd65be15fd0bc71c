// What a node's controller and its supervisor tell each other, over the channel between them. The end of the channel is a
// message too: the other one is dead. Both are of one installation, so there is no version.
//
//   controller → supervisor   alive*, up, then released | clear, …; drained, when an operator takes the node out or in again
//   supervisor → controller   cleared, for each clear that was carried out, and for each empty (with EMPTIED for its epoch)

export type FromController =
  | { readonly kind: "alive" }
  /** It serves. */
  | { readonly kind: "up" }
  | { readonly kind: "clear"; readonly epoch: number }
  | { readonly kind: "empty"; readonly forMs: number }
  /** `holdMs`: no worker is started for so long. */
  | { readonly kind: "released"; readonly holdMs?: number | undefined }
  | { readonly kind: "drained"; readonly isDrained: boolean };

export interface Cleared {
  readonly kind: "cleared";
  readonly epoch: number;
  /** When nobody of the worker's lived any more, on the clock that all processes of the machine share: digits. */
  readonly goneAtNs: string;
}

/** Null: no message of ours. */
export function readFromController(message: unknown): FromController | null {
  if (typeof message !== "object" || message === null || !("kind" in message)) return null;
  switch (message.kind) {
    case "alive":
    case "up":
      return { kind: message.kind };
    case "released":
      return {
        kind: "released",
        holdMs: "holdMs" in message && typeof message.holdMs === "number" ? message.holdMs : 0,
      };
    case "clear":
      return "epoch" in message && typeof message.epoch === "number" ? { kind: "clear", epoch: message.epoch } : null;
    case "drained":
      return "isDrained" in message && typeof message.isDrained === "boolean"
        ? { kind: "drained", isDrained: message.isDrained }
        : null;
    case "empty":
      return "forMs" in message && typeof message.forMs === "number" ? { kind: "empty", forMs: message.forMs } : null;
    default:
      return null;
  }
}

export function readCleared(message: unknown): Cleared | null {
  if (typeof message !== "object" || message === null || !("kind" in message) || message.kind !== "cleared")
    return null;
  if (!("epoch" in message) || typeof message.epoch !== "number") return null;
  if (!("goneAtNs" in message) || typeof message.goneAtNs !== "string") return null;
  return { kind: "cleared", epoch: message.epoch, goneAtNs: message.goneAtNs };
}
