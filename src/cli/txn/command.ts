// `tenure txn run|show|list|replay`: transactions over islands.

import { newTransactionId, type TransactionRequest, type TransactionView } from "../../client/index.ts";
import { assertNever, ERRORS, TenureError } from "../../contract/errors.ts";
import { clientOf, type Connection, readConnection } from "../connection/connection.ts";
import { readTransaction } from "../files/payload.ts";
import { paintFor } from "../kit/colour.ts";
import { complaint } from "../kit/complaint.ts";
import { checkCanAsk, confirmed } from "../kit/confirm.ts";
import { UsageError } from "../kit/flags.ts";
import { listText } from "../kit/list-output.ts";
import { json, LIST_OUTPUTS, OUTPUTS } from "../kit/output.ts";
import { printed, stdoutPaint } from "../kit/print.ts";
import { untilSignal } from "../kit/until-signal.ts";
import { checkedId, type Force, readTxnFlags, type TxnStep } from "./flags.ts";
import { TXN } from "./help.ts";
import { committedText, outcomeObject, rolledBackText, unknownText, viewObject, viewsTable, viewText } from "./view.ts";

/** Whatever the reason: nothing of it was done. */
const EXIT_ROLLED_BACK = ERRORS.txn_conflict.exit;
const COSTS =
  "--force ends the transaction at this island alone, without its home. Where home comes back, or another island has ended it the other way, half of it is done, for ever";
const EXIT_IN_DOUBT = ERRORS.OUTCOME_UNKNOWN.exit;
const EXIT_NOT_FORCED = ERRORS.txn_conflict.exit;
const FORCED = { commit: "committed", rollback: "rolled-back" } as const satisfies Record<Force, string>;

export async function txn(args: readonly string[]): Promise<number> {
  const flags = readTxnFlags(args);
  if (flags === "help") return printed(TXN.help);
  const { step } = flags;
  if (step.verb === "replay" && step.force !== null && step.isAsked) checkCanAsk(COSTS, "--yes");
  const connection = await readConnection(flags.connection, process.env, step.verb === "list" ? LIST_OUTPUTS : OUTPUTS);
  switch (step.verb) {
    case "run":
      return await run(connection, step);
    case "show":
      return await show(connection, step.id);
    case "list":
      return await list(connection, step.inDoubt);
    case "replay":
      return step.force === null ? await replay(connection, step.id) : await force(connection, step, step.force);
    default:
      return assertNever(step, "txn");
  }
}

async function run(connection: Connection, { file, id }: Extract<TxnStep, { verb: "run" }>): Promise<number> {
  const request = requestOf(await readTransaction(file), id);
  const end = untilSignal();
  const outcome = await clientOf(connection)
    .transactions.run(request, { signal: end.signal })
    .catch((error: unknown) => {
      // Nothing can have arrived: there is nothing to look for under this id.
      if (end.signal.aborted) return null;
      throw error;
    });
  if (outcome === null) return end.code;
  const isJson = connection.output === "json";
  if (isJson) printed(json(outcomeObject(outcome)));
  switch (outcome.state) {
    case "committed":
      return isJson ? 0 : printed(committedText(outcome, stdoutPaint()));
    case "rolled-back":
      return complained(isJson, rolledBackText(outcome), EXIT_ROLLED_BACK);
    case "unknown":
      // Who ends it by Ctrl-C needs the id too: run again without it, it could be done twice.
      return complained(isJson, unknownText(outcome), end.signal.aborted ? end.code : EXIT_IN_DOUBT);
    default:
      return assertNever(outcome, "outcome");
  }
}

/** The servers check the rest. */
function requestOf(body: unknown, id: string | null): TransactionRequest {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new UsageError('run takes a JSON object: {"participants": [{"backend_hash": …, "operations": […]}]}');
  const { txn_id: own, ...rest } = body as { readonly txn_id?: unknown };
  if (own !== undefined && (typeof own !== "string" || checkedId("txn_id", own) !== own))
    throw new UsageError(`txn_id must be a text, and is ${JSON.stringify(own)}`);
  if (id !== null && own !== undefined && id !== own) {
    throw new UsageError(`the file has the txn_id ${own}, and --id is ${id}: give one of them`);
  }
  return { ...(rest as Omit<TransactionRequest, "id">), id: id ?? own ?? newTransactionId() };
}

async function show(connection: Connection, id: string): Promise<number> {
  const view = await found(connection, id);
  return printed(connection.output === "json" ? json(viewObject(view)) : viewText(view));
}

async function list(connection: Connection, inDoubt: boolean): Promise<number> {
  const views: TransactionView[] = [];
  for await (const view of clientOf(connection).transactions.list({ inDoubt })) views.push(view);
  const text = listText(connection.output, "transactions", views.map(viewObject), () =>
    viewsTable(views, stdoutPaint()),
  );
  return printed(text);
}

async function replay(connection: Connection, id: string): Promise<number> {
  const state = await clientOf(connection).transactions.replay(id);
  if (state === null) throw notHere(id);
  const isOpen = state === "prepared";
  const isJson = connection.output === "json";
  if (isJson) printed(json({ txn_id: id, state: wire(state), forced: false }));
  if (!isOpen) return isJson ? 0 : printed(`${id} is ${shown(state)}\n`);
  const text = `transaction ${id} is still in doubt: its home has not said what was decided. See why home does not answer (tenure tc rm list), and try again.`;
  return complained(isJson, text, EXIT_IN_DOUBT);
}

async function force(
  connection: Connection,
  { id, isAsked }: Extract<TxnStep, { verb: "replay" }>,
  how: Force,
): Promise<number> {
  const before = await found(connection, id);
  // Home waits for an island that is gone for good: nothing is left to decide, and nothing is locked.
  const isAwaited = before.state === "committed" && before.isInDoubt && how === "commit";
  if (before.state !== "prepared" && !isAwaited) {
    const text = `transaction ${id} is ${shown(before.state)} here, so there is nothing to force. Nothing was done.`;
    throw new TenureError("txn_conflict", text);
  }
  if (isAsked && !(await confirmed(isAwaited ? awaitedBy(before) : costsOf(before, how)))) {
    throw new UsageError("nothing was done: the answer was not yes");
  }
  const state = await clientOf(connection).transactions.replay(id, { force: how });
  if (state === null) throw notHere(id);
  const isForced = state === FORCED[how];
  const isJson = connection.output === "json";
  if (isJson) printed(json({ txn_id: id, state: wire(state), forced: isForced }));
  if (isForced) return isJson ? 0 : printed(`${id} is ${shown(state)} here, as you have forced it\n`);
  const text = `transaction ${id} is ${shown(state)} here: its home has answered, and home's decision counts. Nothing was forced.`;
  return complained(isJson, text, EXIT_NOT_FORCED);
}

function costsOf({ id, home, participants }: TransactionView, how: Force): string {
  const other = how === "commit" ? "rolled back" : "committed";
  return `This ${how === "commit" ? "commits" : "rolls back"} ${id} at this island alone, without its home ${home}. Only if that island is gone for good, and none of its other islands (${participants.length} take part) has it as ${other}: else half of it is done, for ever. Look there first: tenure txn show ${id}.`;
}

function awaitedBy({ id, home, waitsFor }: TransactionView): string {
  if (waitsFor.includes(home))
    return `${id} is committed here, and this island then waits no longer for its home ${home} to know that. Only if that island is gone for good: it would never hear that its part is done here.`;
  return `${id} is committed here, at its home, which then waits no longer for ${waitsFor.join(", ")}. Only if that island is gone for good: if it comes back after this one has forgotten the transaction, its part is rolled back, and half of it is done, for ever.`;
}

async function found(connection: Connection, id: string): Promise<TransactionView> {
  const view = await clientOf(connection).transactions.get(id);
  if (view === null) throw notHere(id);
  return view;
}

function notHere(id: string): TenureError {
  const text = `this island knows no transaction ${id}: it takes no part in it, was never asked, or has forgotten it since. Other islands may know it.`;
  return new TenureError("txn_not_found", text);
}

function shown(state: TransactionView["state"]): string {
  return state === "rolled-back" ? "rolled back" : state;
}

function wire(state: TransactionView["state"]): string {
  return state === "rolled-back" ? "rolled_back" : state;
}

/** Of what is no error of the command: its JSON says it all. */
function complained(isJson: boolean, text: string, code: number): number {
  if (!isJson) process.stderr.write(complaint("tenure", text, paintFor(process.stderr, process.env)));
  return code;
}
