// What may be asked of values and what is answered: bodies, queries, parameters, answers. Names are those of ports/values.ts in snake_case.

import { Type } from "typebox";
import type { Json } from "../../core/kit/json.ts";
import * as limits from "../../core/kit/limits.ts";
import { CONSISTENCY, Epoch, pathName, Scope } from "../requests.ts";
import { integer, json, nullable, strict, text } from "../schema-kit.ts";

const Name = text(limits.VALUE_NAME_BYTES_MAX);
/** An empty one is no bound. */
const Prefix = text(limits.VALUE_NAME_BYTES_MAX, 0);
/** Who writes, and on which condition. `scope` and `epoch` only together. */
const CONDITIONS = {
  if_version: Type.Optional(integer(0)),
  scope: Type.Optional(Scope),
  epoch: Type.Optional(Epoch),
};

export const ValueParams = strict({ name: pathName(limits.VALUE_NAME_BYTES_MAX) });
export const ValuesQuery = strict({
  ...CONSISTENCY,
  prefix: Type.Optional(Prefix),
  after: Type.Optional(Name),
  limit: Type.Optional(integer(1, limits.VALUES_PER_PAGE_MAX)),
});
export const PutValueBody = strict({ value: json(limits.VALUE_BYTES_MAX), ...CONDITIONS });
export const DeleteValueQuery = strict(CONDITIONS);
export const WatchValuesQuery = strict({ prefix: Type.Optional(Prefix), after: Type.Optional(integer(0)) });

export const ValueAnswer = strict({
  name: Type.String(),
  value: Type.Unsafe<Json>(Type.Unknown()),
  version: integer(1),
  updated_at_ms: Type.Number(),
  scope: Type.Optional(Type.String()),
  epoch: Type.Optional(integer(1)),
  /** Of the transaction that has locked it. */
  pending_txn: Type.Optional(Type.String()),
});
export const ValuesAnswer = strict({
  values: Type.Array(ValueAnswer),
  next: nullable(Type.String()),
  as_of: integer(0),
});
export const PutValueAnswer = strict({ version: integer(1) });
export const DeleteValueAnswer = strict({ deleted: Type.Boolean(), version: nullable(integer(1)) });
