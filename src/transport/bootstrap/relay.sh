# Run the installed executable, with what comes on standard input. Its environment is the account's own, but for where the installation is. What stands before
# this: a_home, a_spool (empty for the usual place), a_count, and its arguments in a_1, a_2 …
main() {
  program=$root/current/clio-relay
  if [ ! -x "$program" ]; then refuse not_installed "$program"; fi
  set --
  index=0
  while [ "$index" -lt "$a_count" ]; do
    index=$((index + 1))
    eval "set -- \"\$@\" \"\$a_$index\""
  done
  if [ -n "$a_home" ]; then
    CLIO_RELAY_HOME=$root
    export CLIO_RELAY_HOME
  fi
  if [ -n "$a_spool" ]; then
    CLIO_RELAY_SPOOL_DIR=$(expanded "$a_spool")
    export CLIO_RELAY_SPOOL_DIR
  fi
  # Its standard output is a document of some kilobytes; its standard error is taken apart from it. What it starts must not hold fd 5.
  {
    said=$({
      printed=$(restored "$program" "$@" 5>&-)
      code=$?
      say code "$code" >&5
      say printed "$printed" >&5
    } 2>&1)
  } 5>&1
  say said "$(printf '%s' "$said" | dd bs=16384 count=1 2>/dev/null)"
}
