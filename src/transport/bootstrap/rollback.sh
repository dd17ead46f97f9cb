# Switch back to the version before. Behind install.sh, whose functions it uses. What stands before this: a_home, a_at.
main() {
  [ -d "$state" ] || refuse not_installed "$root/current"
  locked "$state/lock" roll_back
}

# What is to be done is put down first, as the target of a link: a run that was cut is finished by the next, instead of being turned around.
roll_back() {
  intent=$(readlink "$root/.rollback" 2>/dev/null)
  if [ -z "$intent" ]; then
    current=$(readlink "$root/current" 2>/dev/null)
    previous=$(readlink "$root/previous" 2>/dev/null)
    intent=${current##*/}:${previous##*/}
  fi
  from=${intent%%:*}
  a_digest=${intent#*:}
  exe=$versions/$a_digest/clio-relay
  if [ -z "$a_digest" ] || [ "$a_digest" = "$from" ] || [ ! -f "$exe" ]; then refuse nothing_before "$root/previous"; fi
  [ "$(digest_of "$exe")" = "$a_digest" ] || refuse damaged "$exe"
  trial_run
  knows_queues
  ln -s "$intent" "$root/.rollback" 2>/dev/null
  point current "$a_digest"
  if [ -n "$from" ]; then point previous "$from"; fi
  flush "$root"
  rm -f "$root/.rollback"
  say before "$from"
  say now "$a_digest"
  printf '{"at":"%s","host":"%s","run":"%s","step":"rollback","digest":"%s"}\n' "$a_at" "$(uname -n)" "$CLIO_NONCE" "$a_digest" >>"$state/journal.jsonl"
}
