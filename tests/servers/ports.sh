# shellcheck shell=bash
# Sourced. Picks TCP ports on the loopback for servers that cannot pick one themselves.
# They come from below the range from which the kernel serves outgoing connections, so none is taken by chance.

free_port() {
  local port
  for _ in {1..200}; do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    # Nobody answers there: it is free. (A refused connection is the only check that needs no tool.)
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return 0
    fi
  done
  echo "no free TCP port between 20000 and 32000" >&2
  return 1
}
