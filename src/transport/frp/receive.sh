# Take a frpc from standard input, and put it in its place when it is whole. What stands before this: a_home, a_digest, layout.sh, take.sh.
main() {
  place=$root/frp/$a_digest
  if ! (umask 077 && mkdir -p "$root/frp") 2>/dev/null; then refuse unwritable "$(mkdir -p "$root/frp" 2>&1)"; fi
  # What was cut a day ago is of no use any more.
  find "$root/frp" -name '.incoming-*' -mtime +0 -exec rm -f {} + 2>/dev/null
  incoming=$root/frp/.incoming-$a_digest-$$
  take "$incoming" "$a_digest"
  if ! said=$( (umask 077 && mkdir -p "$place" && chmod 500 "$incoming" && mv -f "$incoming" "$place/frpc") 2>&1); then
    rm -f "$incoming"
    refuse unwritable "$said"
  fi
  trial_said=$(trial 10 "$place/frpc" --version 2>&1) || refuse does_not_start "$trial_said"
  say version "$trial_said"
}
