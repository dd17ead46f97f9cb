# Write the unit of a cluster's worker. Linger comes first. What stands before this: a_home, a_unit, a_text, a_enable (yes or no), a_scoped (yes: without linger).
main() {
  reachable || refuse no_manager "$(manager show -p Version 2>&1)"
  lingers=$(linger)
  say linger "$lingers"
  if [ "$lingers" != yes ] && [ "$a_scoped" != yes ]; then refuse no_linger "$(id -un)"; fi
  locked "$state/service.lock" write_unit
}

write_unit() {
  if [ "$(cat "$unit_file" 2>/dev/null)" = "$a_text" ]; then say written kept; else
    if ! (mkdir -p "${unit_file%/*}" && printf '%s\n' "$a_text" >"$unit_file.new" && mv -f "$unit_file.new" "$unit_file") 2>/dev/null; then
      refuse unwritable "$unit_file"
    fi
    say written yes
  fi
  if [ "$(of NeedDaemonReload)" != no ] || [ "$(of LoadState)" != loaded ]; then manager daemon-reload || refuse manager "daemon-reload ended with $?"; fi
  # The manager may look elsewhere: another configuration directory, a unit of the machine's of that name.
  used=$(of FragmentPath)
  [ "$(cat "$used" 2>/dev/null)" = "$a_text" ] || refuse not_loaded "$used"
  if [ "$a_enable" = yes ] && [ "$(of UnitFileState)" != enabled ]; then
    said=$(manager enable "$a_unit" 2>&1) || refuse manager "$said"
    say enabled yes
  fi
}
