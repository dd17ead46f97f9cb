# Take a file from standard input, and keep it when it is whole. What stands before this: a_home, a_digest, layout.sh.
main() {
  said=$(mkdir -p "$root/jarvis" 2>&1) || refuse unwritable "$said"
  # What was cut a day ago is of no use any more.
  find "$root/jarvis" -maxdepth 1 \( -name '.incoming-*' -o -name '.place-*' \) -mtime +0 -exec rm -rf {} + 2>/dev/null
  incoming=$root/jarvis/.incoming-$a_digest
  if ! said=$( (cat >"$incoming.$$") 2>&1); then
    rm -f "$incoming.$$"
    free=$(free_kib "$root/jarvis")
    if [ "${free:-1024}" -lt 128 ]; then refuse no_room "$said"; fi
    refuse unwritable "$said"
  fi
  actual=$(digest_of "$incoming.$$")
  if [ "$actual" != "$a_digest" ]; then
    rm -f "$incoming.$$"
    [ -n "$actual" ] || refuse no_digest_program "none of sha256sum, shasum, openssl and perl is there"
    refuse digest_differs "$actual"
  fi
  mv -f "$incoming.$$" "$incoming" || refuse unwritable "$incoming"
}
