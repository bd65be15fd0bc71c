// A site's journal with all of its tenants: the jobs' book, the API keys, the revoked certificates and the sites of the mesh.

import type { JobsBook } from "../../core/jobs/index.ts";
import type { Digest } from "../../ports/digest.ts";
import { CertificatesFold } from "../keys/certificates-fold.ts";
import { KeysFold } from "../keys/keys-fold.ts";
import { ControllersFold } from "../mesh/controllers-fold.ts";
import { OwnLineFold } from "../mesh/own/own-line-fold.ts";
import { JobsTenant, type JobsTenantOptions } from "./jobs-tenant.ts";
import { Journal } from "./journal.ts";
import type { Tenant } from "./tenant.ts";

/** Events are read from their tail and from the history; nobody reads them from the servers' log. */
export const JOBS_LOG_KEPT = { recordsMax: 1 };

export interface SiteJournalOptions extends JobsTenantOptions {
  readonly tenants?: readonly Tenant[] | undefined;
  /** Above it lie the timestamps of events that are sealed. */
  readonly floorMs?: (() => number) | undefined;
}

export class SiteJournal extends Journal {
  readonly jobs: JobsTenant;
  readonly book: JobsBook;
  readonly keys: KeysFold;
  readonly certificates: CertificatesFold;
  readonly controllers: ControllersFold;
  readonly ownLine: OwnLineFold;

  constructor(digest: Digest, options: SiteJournalOptions = {}) {
    const [keys, certificates, controllers] = [new KeysFold(), new CertificatesFold(), new ControllersFold()];
    const [ownLine, jobs] = [new OwnLineFold(), new JobsTenant(options)];
    super(digest, [keys, certificates, controllers, ownLine, ...(options.tenants ?? [])], jobs, options.floorMs);
    this.jobs = jobs;
    this.keys = keys;
    this.certificates = certificates;
    this.controllers = controllers;
    this.ownLine = ownLine;
    this.book = jobs.book;
  }
}
