#!/bin/sh
# Makes the certificates of compose.yaml, once: an authority in $1/ca, a node's in $1/n1, $1/n2 and $1/n3, an agent's in
# $1/agent and an operator's in $1/admin. Run again, it renews what is there and keeps the keys. Only this container sees the
# authority's key.
#   certificates.sh DIRECTORY [OWNER]
set -eu
to=$1
owner=${2:-}

[ -e "$to/ca/ca.key" ] || tenure cert init --dir "$to/ca"
for node in n1 n2 n3; do
  tenure cert issue --dir "$to/ca" --out "$to/$node" --node-id "$node" --host "$node,localhost,127.0.0.1"
  # One configuration for all nodes needs one name for all certificates.
  ln -sf "$node.crt" "$to/$node/node.crt"
  ln -sf "$node.key" "$to/$node/node.key"
done
tenure cert issue --dir "$to/ca" --out "$to/agent" --agent builders
tenure cert issue --dir "$to/ca" --out "$to/admin" --operator admin
[ -z "$owner" ] || chown -R "$owner" "$to/n1" "$to/n2" "$to/n3" "$to/agent" "$to/admin"
