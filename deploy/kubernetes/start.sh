#!/bin/sh
# What a pod of the StatefulSet runs. Its name is its node id (TENURE_NODE_ID, by the downward API); its certificate is the one of
# that name in the secret, under one name for all, because all share one configuration. Links, not copies: when the secret
# changes, SIGHUP is enough.
set -eu
: "${TENURE_NODE_ID:?is the name of the pod, from metadata.name}"
secret=${TLS_DIR:-/tls}
run=${RUN_DIR:-/run/tenure}

for file in "$TENURE_NODE_ID.crt" "$TENURE_NODE_ID.key" ca.crt; do
  if [ ! -r "$secret/$file" ]; then
    echo "start.sh: $secret/$file can't be read. The secret tenure-tls needs it: tenure cert issue --node-id $TENURE_NODE_ID" >&2
    exit 78
  fi
done
ln -sf "$secret/ca.crt" "$run/ca.crt"
ln -sf "$secret/$TENURE_NODE_ID.crt" "$run/node.crt"
ln -sf "$secret/$TENURE_NODE_ID.key" "$run/node.key"

# Only while the config map tenure-bootstrap is there, which is deleted when the cluster stands.
if [ "${BOOTSTRAP_NODE:-}" = "$TENURE_NODE_ID" ]; then
  exec tini -- tenure server start --config "${CONFIG_FILE:-/etc/tenure/tenure.toml}" --bootstrap
fi
exec tini -- tenure server start --config "${CONFIG_FILE:-/etc/tenure/tenure.toml}"
