# Framed answers: docs/wire.md, "Scripts on a login node". What stands before this: CLIO_NONCE.

# The account's own surroundings, for programs that live on: `restored`.
clio_umask=$(umask)
clio_locale=${LC_ALL-}
clio_has_locale=${LC_ALL+yes}
umask 077
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL

# restored COMMAND…: run a command with the locale and umask that the account has.
restored() (
  umask "$clio_umask"
  if [ -n "$clio_has_locale" ]; then LC_ALL=$clio_locale; else unset LC_ALL; fi
  exec "$@"
)

# say NAME VALUE
say() {
  case $2 in
    *[!A-Za-z0-9_./:@,+=-]*)
      printf 'clio-relay %s %s %s\n' "$CLIO_NONCE" "$1" "$(printf '%s' "$2" | od -An -v -tx1 | tr -d '\n' | tr -s ' ' '%')"
      ;;
    *) printf 'clio-relay %s %s %s\n' "$CLIO_NONCE" "$1" "$2" ;;
  esac
}

# refuse REASON DETAIL: end with a reason that the reader knows.
refuse() {
  say refused "$1"
  say detail "$2"
  exit 1
}

# has PROGRAM
has() { command -v "$1" >/dev/null 2>&1; }

# clio_run FUNCTION: its answer in a frame.
clio_run() {
  printf '\nclio-relay %s begin\n' "$CLIO_NONCE"
  ("$1")
  clio_status=$?
  printf '\nclio-relay %s end %s\n' "$CLIO_NONCE" "$clio_status"
}
