// What `tenure server` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { describe } from "../kit/description.ts";

export const SERVER = describe(
  "server",
  "one node of Tenure's own cluster: start, controller, recover, restore",
  `tenure server VERB --config FILE: one node of Tenure's own cluster, or of a site on your Postgres.

  start      runs the node until SIGTERM or SIGINT, which hand leadership over first; SIGHUP reloads certificates. A supervisor
             with two processes: the controller, and, where agent.enabled is set and the node does not lead, a worker
  controller the controller alone, for those who supervise it themselves
  recover    the node is stopped and a quorum is lost for good: makes its data directory a new cluster of one
  restore    the data directory is empty: fills it from a saved snapshot, as a new cluster of one

  --config FILE         the configuration (docs/reference/configuration.md); \`tenure config check FILE\` checks it
  --backend URL         start, controller: postgres://…, the log is kept there and the nodes find each other there. Better in the
                        configuration or in TENURE_SERVER_BACKEND: others on this machine see a command line
  --bootstrap           start, controller: this is the first node of a new cluster. Give it once: an empty directory then founds a
                        cluster, unless a configured peer already has one
  --mode MODE           start, controller: standalone (default), or distributed: this site joins others
                        (docs/mesh.md)
  --controller-id ID    start, controller: the id of this site among others; at the founding it becomes the cluster's id (default),
                        and another one later is refused
  --controller-name N   start, controller: the name of this site among others (default: the host's name)
  --parent-url URL,…    start, controller: sites to register with, better two
  --join URL,…          start, controller: this node is a transaction coordinator, and meets the others at these APIs (TENURE_TC_JOIN;
                        tc.join of the configuration). With its own URL among them it starts where no other answers
  --force-new-cluster   recover: yes, really. What this node never received is lost; the old nodes must not come back
  --snapshot FILE       restore: what \`tenure cluster snapshot save\` wrote
  --history DIR         restore: copies of a node's files events-…, made after the snapshot was saved: older events are kept too
  --paused              restore: a copy for inspection. It leases no job, fires no schedule and grants no scope until
                        \`tenure cluster resume\`
  -o table|json         recover, restore: for people (default), or one JSON object; --json is -o json
  --help                this text

exit codes: 0 done, or stopped in order; the controller's, where a restart does not fix it or it ends five times soon after its
start; 64 wrong use; 65 the snapshot is not whole; 70 a mistake of ours; 74 the disk failed;
78 the configuration, an address that is taken, the certificates or the data directory (docs/errors.md)
`,
);
