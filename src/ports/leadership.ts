// Whether this node leads, for whoever acts only then: the same for the servers' own consensus and for a database.

export interface Leadership {
  /** The epoch in which this node leads and may act: everything of earlier epochs is known here. Null: it does not. */
  epoch(): number | null;
  /** Leadership is on its way here or away from here, and its outcome will be known in a moment. */
  isTurningOver(): boolean;
  /** True: nobody else led at some time after this call was made. False: that is not known. */
  confirm(): Promise<boolean>;
  /** Told whenever what the above say may have changed. */
  subscribe(listener: () => void): () => void;
}
