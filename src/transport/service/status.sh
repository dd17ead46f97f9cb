# How a cluster's service is. Nothing is changed. What stands before this: a_cluster, a_home, a_unit.
main() {
  say hostname "$(uname -n)"
  say user "$(id -un)"
  [ -x "$root/current/clio-relay" ] || say missing yes
  if has crontab; then say cron "$(cron_runs)"; fi
  say uptime "$(cut -d . -f 1 /proc/uptime 2>/dev/null)"
  if reachable; then
    say manager yes
    say linger "$(linger)"
    show
  fi
  record=$root/core/$a_cluster/worker.json
  if [ -f "$record" ]; then
    said=$(dd if="$record" bs=16384 count=1 2>/dev/null)
    say worker "$said"
    pid=$(printf '%s' "$said" | sed -n 's/.*"pid":\([0-9]\{1,10\}\).*/\1/p')
    if [ -n "$pid" ]; then say worker_start "$(start_of "$pid")"; fi
  fi
  supervised
}

supervised() {
  file=$state/supervise-$a_cluster
  [ -f "$file" ] || return 0
  say launcher "$(sed -n 's/^# launcher: //p' "$file")"
  if [ -e "$file.stopped" ]; then say stopped yes; fi
  lock_boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
  owner=$(readlink "$file.lock" 2>/dev/null)
  if [ -n "$owner" ] && held "$owner" "$file.lock"; then
    owner=${owner#*:*:}
    say supervisor "${owner%%:*}"
  fi
}
