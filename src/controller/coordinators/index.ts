// The door of the transaction coordinators.

export type { CoordinatorNews, CoordinatorWork } from "./context.ts";
export { Coordinator } from "./coordinator.ts";
export {
  type CoordinatorFiles,
  LEASES_NAME,
  LEDGER_NAME,
  openCoordinatorFiles,
  readLedger,
  setLedgerAside,
  writeLedger,
} from "./files.ts";
export { CoordinatorService } from "./service.ts";
