# Make room for a version, put right what a run that was cut left, and say what is there of it. What stands before this: a_digest, a_home.
main() {
  said=$(mkdir -p "$versions" 2>&1 && mkdir -p "$state" 2>&1) || refuse unwritable "$said"
  for link in current previous; do
    if [ -e "$root/$link" ] && [ ! -L "$root/$link" ]; then refuse foreign "$root/$link is in the way: it is no symbolic link"; fi
  done
  locked "$state/lock" prepare
}

prepare() {
  incoming=$versions/.incoming-$a_digest
  staged=$versions/.place-$a_digest
  # Cut between two steps of install.sh: back to where that begins.
  if [ -f "$staged/clio-relay" ] && [ ! -e "$incoming" ]; then mv "$staged/clio-relay" "$incoming"; fi
  rm -rf "$staged" "$root/.current.new" "$root/.previous.new" "$root/.rollback" "$versions"/.damaged-* "$versions/$a_digest"/clio-relay.[0-9]*
  # What was sent for another version a day ago is of no use any more.
  find "$versions" -name '.incoming-*' ! -name ".incoming-$a_digest" -mtime +0 -exec rm -f {} + 2>/dev/null
  exe=$versions/$a_digest/clio-relay
  if [ -f "$exe" ] && [ ! -L "$exe" ]; then
    actual=$(digest_of "$exe")
    [ -n "$actual" ] || refuse no_digest_program "none of sha256sum, shasum, openssl and perl is there"
    if [ "$actual" = "$a_digest" ]; then say installed yes; else say damaged "$exe"; fi
  elif [ -z "$(digest_of /dev/null)" ]; then
    refuse no_digest_program "none of sha256sum, shasum, openssl and perl is there"
  fi
  received=0
  if [ -f "$incoming" ]; then
    # A run that was cut behind its upload may have left it as it is installed.
    chmod 600 "$incoming" 2>/dev/null
    received=$(size_of "$incoming")
  fi
  say received "$received"
  say free_kib "$(free_kib "$versions")"
  say free_inodes "$(free_inodes "$versions")"
}
