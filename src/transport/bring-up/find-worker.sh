# Where the worker of a cluster is. What stands before this: a_cluster, a_home, a_site, layout.sh, site.sh.
main() {
  say hostname "$(uname -n)"
  say boot_id "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
  if [ "$a_site" = yes ]; then
    say site_marker "$(site_marker)"
    say scheduler_cluster "$(scheduler_cluster)"
  fi
  say root "$root"
  if [ -x "$root/current/clio-relay" ]; then say installed yes; fi
  record=$root/core/$a_cluster/worker.json
  [ -f "$record" ] || return 0
  said=$(dd if="$record" bs=16384 count=1 2>/dev/null)
  say worker "$said"
  pid=$(printf '%s' "$said" | sed -n 's/.*"pid":\([0-9]\{1,10\}\).*/\1/p')
  # field 22 of proc_pid_stat(5)
  if [ -n "$pid" ]; then say start_time "$(sed 's/^.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d ' ' -f 20)"; fi
}
