#!/bin/sh
# Keeps the worker of a cluster running where users have no service manager. TERM stops both. Written by clio-relay.
umask 077
root=$(cd "${0%/*}/.." && pwd) || exit 1
file=$root/bootstrap/${0##*/}
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
start_of() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }
mine=$(uname -n):$boot:$$:$(start_of $$):supervisor

# One at a time; on a home that several hosts share, on one host at a time.
until ln -s "$mine" "$file.lock" 2>/dev/null; do
  owner=$(readlink "$file.lock" 2>/dev/null)
  rest=${owner#*:}
  pid=${rest#*:}
  start=${pid#*:}
  if [ "${owner%%:*}" != "$(uname -n)" ]; then exit 0; fi
  if [ "${rest%%:*}" = "$boot" ] && [ "$(start_of "${pid%%:*}")" = "${start%%:*}" ]; then exit 0; fi
  rm -f "$file.lock"
done
if [ -e "$file.stopped" ]; then
  rm -f "$file.lock"
  exit 0
fi

# As units of services do: lib/system/plain-copies.ts.
export GLIBC_TUNABLES="${GLIBC_TUNABLES:-glibc.cpu.x86_rep_movsb_threshold=0x40000000}"

stopping=
child=
trap 'stopping=yes; [ -z "$child" ] || kill "$child" 2>/dev/null' TERM INT
trap '' HUP
# wait(1) returns when a signal comes, too.
awaited() {
  while kill -0 "$child" 2>/dev/null; do wait "$child"; done
  child=
}
while [ -z "$stopping" ]; do
  # No more than one start in 5 s; one that ran for longer is followed at once.
  sleep 5 &
  pause=$!
  "$root/current/clio-relay" worker run --cluster "$cluster" >/dev/null 2>>"$log" &
  child=$!
  awaited
  if [ -z "$stopping" ]; then
    child=$pause
    awaited
  fi
  kill "$pause" 2>/dev/null
done
rm -f "$file.lock"
