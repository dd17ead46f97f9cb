# Remove what bootstrap has put there, and list what remains. What stands before this: a_home, a_cluster, a_purge (yes or no); a_base where the installation is
# another one than a_home says: the directory that makes it what it is.
main() {
  if [ ! -d "$root" ]; then
    say absent "$root"
    return
  fi
  mkdir -p "$state" 2>/dev/null
  locked "$state/lock" uninstall || return
  rmdir "$state" "$root/jarvis" "$root/core" "$root/spool" "$root" 2>/dev/null
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
      if [ -e "$place" ]; then
        # Directories of inputs cannot be written to.
        find "$place" -type d ! -perm -u+w -exec chmod u+w {} + 2>/dev/null
        rm -rf "$place" && say removed "$place"
      fi
    done
    for place in "$root"/jarvis/*; do
      case ${place##*/} in *[!0-9a-f]*) continue ;; esac
      rm -rf "$place" && say removed "$place"
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
  sockets_of "$(expanded "${a_base:-${a_home:-$HOME}}")"
}

# sockets_of DIRECTORY: where this machine's sockets and locks of that installation lie, as the program chooses it.
sockets_of() {
  real=$(cd -P "$1" 2>/dev/null && pwd -P) || return 0
  digest=$(printf %s "$real" | { sha256sum 2>/dev/null || shasum -a 256 2>/dev/null; } | cut -c 1-16)
  [ -n "$digest" ] || return 0
  told=
  for place in "${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/clio-relay" "/run/user/$(id -u)/clio-relay" "${TMPDIR:-/tmp}/clio-relay-$(id -u)"; do
    if [ "$place" = "$told" ] || [ ! -d "$place/$digest" ]; then continue; fi
    told=$place
    say remains "$(du -sk "$place/$digest" 2>/dev/null | cut -f1) $place/$digest"
  done
}
