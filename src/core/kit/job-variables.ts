// Variables by which Tenure knows the processes of a job, and tells a command about itself. A job can't set them: with one of
// another's it would be taken for that, or for none of ours.

export const JOB_VARIABLES: readonly string[] = [
  "TENURE_JOB_ID",
  "TENURE_JOB_KIND",
  "TENURE_JOB_ATTEMPT",
  "TENURE_JOB_COOKIE",
  "TENURE_AGENT_PROCESS",
  "TENURE_AGENT_COOKIE",
  "TENURE_CONTROLLER_COOKIE",
  "TENURE_KEEPER",
  "TENURE_SUPERVISED",
];

const RESERVED: ReadonlySet<string> = new Set(JOB_VARIABLES);

export function isJobVariable(name: string): boolean {
  return RESERVED.has(name);
}
