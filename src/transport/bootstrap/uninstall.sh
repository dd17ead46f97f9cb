# Remove what bootstrap has put there, and list what remains. What stands before this: a_home, a_cluster, a_purge (yes or no).
main() {
  if [ ! -d "$root" ]; then
    say absent "$root"
    return
  fi
  mkdir -p "$state" 2>/dev/null
  locked "$state/lock" uninstall || return
  rm -f "$state/lock"
  rmdir "$state" "$root/core" "$root/spool" "$root" 2>/dev/null
  remains
}

uninstall() {
  for record in "$root"/core/*/owner.json; do
    if [ -f "$record" ] && [ "$record" != "$root/core/$a_cluster/owner.json" ]; then refuse in_use "$record"; fi
  done
  if launches; then rm -f "$launcher" && say removed "$launcher"; fi
  for link in current previous; do
    if [ -L "$root/$link" ]; then rm -f "$root/$link" && say removed "$root/$link"; fi
  done
  used=$(running)
  for directory in "$versions"/* "$versions"/.[!.]*; do
    [ -e "$directory" ] || continue
    case $used in
      *" ${directory##*/} "*) say running "$directory" ;;
      *) rm -rf "$directory" && say removed "$directory" ;;
    esac
  done
  rmdir "$versions" 2>/dev/null
  if [ -e "$root/frp" ]; then rm -rf "$root/frp" && say removed "$root/frp"; fi
  if [ "$a_purge" = yes ]; then
    for place in "$root/core/$a_cluster" "$root/spool/$a_cluster"; do
      if [ -e "$place" ]; then rm -rf "$place" && say removed "$place"; fi
    done
  fi
  rm -f "$state/journal.jsonl" "$state/.journal"
}

remains() {
  for place in "$root" "$HOME/.config/clio-relay" "$HOME/.local/state/clio-relay" "$HOME/.cache/clio-relay"; do
    [ -d "$place" ] || continue
    for entry in "$place"/* "$place"/.[!.]*; do
      [ -e "$entry" ] || continue
      say remains "$(du -sk "$entry" 2>/dev/null | cut -f1) $entry"
    done
  done
}
