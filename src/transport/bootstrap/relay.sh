# Run the installed executable, with what comes on standard input. Its environment is the account's own, but for what stands before this: a_home, a_with_home
# (yes: CLIO_RELAY_HOME is the installation), and its arguments in a_1, a_2 … up to a_count.
main() {
  program=$root/current/clio-relay
  if [ ! -x "$program" ]; then refuse not_installed "$program"; fi
  set --
  index=0
  while [ "$index" -lt "$a_count" ]; do
    index=$((index + 1))
    eval "set -- \"\$@\" \"\$a_$index\""
  done
  if [ "$a_with_home" = yes ]; then set -- env CLIO_RELAY_HOME="$root" "$program" "$@"; else set -- "$program" "$@"; fi
  # Its standard output is a document of some kilobytes; its standard error is taken apart from it. What it starts must not hold fd 5.
  {
    said=$({
      printed=$(restored "$@" 5>&-)
      code=$?
      say code "$code" >&5
      say printed "$printed" >&5
      case $code in 126 | 127) say absent yes >&5 ;; esac
    } 2>&1)
  } 5>&1
  say said "$(printf '%s' "$said" | dd bs=16384 count=1 2>/dev/null)"
}
