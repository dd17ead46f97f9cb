# Have a unit started or restarted: at most one job is put into the manager's queue, and one that is there is taken for ours. Nothing is waited for. What stands
# before this: a_home, a_unit, a_action (start or restart).
main() {
  reachable || refuse no_manager "$(manager show -p Version 2>&1)"
  locked "$state/service.lock" activate
}

activate() {
  load=$(of LoadState)
  [ "$load" = loaded ] || refuse not_loaded "$load"
  say before "$(of InvocationID)"
  job=$(of Job)
  if [ -n "$job" ] && [ "$job" != 0 ]; then
    say adopted "$job"
    return
  fi
  active=$(of ActiveState)
  case $a_action/$active in
    start/active | start/activating | */deactivating) say enqueued no ;;
    *)
      # What failed before counts no longer.
      if [ "$active" = failed ]; then manager reset-failed "$a_unit" 2>/dev/null; fi
      said=$(manager --no-block "$a_action" "$a_unit" 2>&1) || refuse manager "$said"
      say enqueued yes
      ;;
  esac
}
