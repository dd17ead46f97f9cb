# Put a supervisor of ours in place, and start it. What stands before this: a_home, a_cluster, a_spool, a_launcher (setsid or cron), a_start (yes or no), a_log,
# a_supervise: its text, and start-supervisor.sh.
main() { locked "$state/service.lock" place_supervisor; }

place_supervisor() {
  if [ "$a_launcher" = cron ] && ! has crontab; then refuse no_cron crontab; fi
  file=$state/supervise-$a_cluster
  before=no
  [ ! -e "$file" ] || before=yes
  {
    printf '#!/bin/sh\n# launcher: %s\ncluster=%s\nlog=%s\n' "$a_launcher" "$(quoted "$a_cluster")" "$(quoted "$a_log")"
    if [ -n "$a_home" ]; then printf 'CLIO_RELAY_HOME=%s\nexport CLIO_RELAY_HOME\n' "$(quoted "$root")"; fi
    if [ -n "$a_spool" ]; then printf 'CLIO_RELAY_SPOOL_DIR=%s\nexport CLIO_RELAY_SPOOL_DIR\n' "$(quoted "$(expanded "$a_spool")")"; fi
    printf '%s\n' "$a_supervise"
  } >"$file.new" && chmod 700 "$file.new" && mv -f "$file.new" "$file" || refuse unwritable "$file"
  mkdir -p "${a_log%/*}"
  say written "$file"
  # A supervisor that nothing will start is none: another launcher may take the place.
  if [ "$a_launcher" = cron ] && ! crontab_with "$file"; then
    [ "$before" = yes ] || rm -f "$file"
    refuse cron "$file"
  fi
  [ "$a_start" != yes ] || start_supervisor
}
