# Stop a cluster's service and take it away, whoever launches it. What stands before this: a_cluster, a_home, a_unit, a_stop_only (yes or no).
main() {
  # Nothing is put where nothing is.
  if [ ! -f "$unit_file" ] && [ ! -d "$state" ]; then return 0; fi
  mkdir -p "$state" 2>/dev/null
  locked "$state/service.lock" take_away
}

take_away() {
  if [ -f "$unit_file" ] && reachable; then
    if [ "$a_stop_only" = yes ]; then said=$(bounded 100 systemctl --user stop "$a_unit" 2>&1); else said=$(bounded 100 systemctl --user disable --now "$a_unit" 2>&1); fi
    # shellcheck disable=SC2181 # both branches set it
    [ $? -eq 0 ] || refuse manager "$said"
    say stopped "$a_unit"
  fi
  file=$state/supervise-$a_cluster
  if [ -f "$file" ]; then
    : >"$file.stopped"
    lock_boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
    owner=$(readlink "$file.lock" 2>/dev/null)
    if [ -n "$owner" ] && held "$owner" "$file.lock"; then
      case $owner in "$(uname -n)":*) ;; *) refuse elsewhere "${owner%%:*}" ;; esac
      rest=${owner#*:*:}
      kill "${rest%%:*}"
      left=300
      while held "$owner" "$file.lock" && [ "$left" -gt 0 ]; do
        left=$((left - 1))
        sleep 0.2 2>/dev/null || sleep 1
      done
      if held "$owner" "$file.lock"; then refuse still_running "${rest%%:*}"; fi
      say stopped "$file"
    fi
  fi
  [ "$a_stop_only" != yes ] || return 0
  if [ -f "$unit_file" ]; then
    rm -f "$unit_file" && say removed "$unit_file"
    if reachable; then manager daemon-reload; fi
  fi
  if [ -f "$file" ]; then
    if [ "$(sed -n 's/^# launcher: //p' "$file")" = cron ]; then crontab_without "$file" || refuse cron "$file"; fi
    rm -f "$file" "$file.lock" "$file.stopped" "$file.first-table" && say removed "$file"
  fi
}
