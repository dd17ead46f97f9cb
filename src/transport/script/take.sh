# Take standard input into the file $1, for its user alone, and refuse it where it does not come whole or its SHA-256 is not $2.
take() {
  if ! said=$( (umask 077 && cat >"$1") 2>&1); then
    rm -f "$1"
    free=$(free_kib "${1%/*}")
    if [ "${free:-1024}" -lt 128 ]; then refuse no_room "$said"; fi
    refuse unwritable "$said"
  fi
  actual=$(digest_of "$1")
  [ "$actual" = "$2" ] && return
  rm -f "$1"
  [ -n "$actual" ] || refuse no_digest_program "none of sha256sum, shasum, openssl and perl is there"
  refuse digest_differs "$actual"
}
