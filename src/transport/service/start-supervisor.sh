# Start the supervisor that is in place; one that runs already is left alone by the new one. What stands before this: a_home, a_cluster.
start_supervisor() {
  file=$state/supervise-$a_cluster
  [ -f "$file" ] || refuse no_supervisor "$file"
  rm -f "$file.stopped"
  if has setsid; then restored setsid "$file" </dev/null >/dev/null 2>&1 & else restored nohup "$file" </dev/null >/dev/null 2>&1 & fi
  say started yes
}

main() { locked "$state/service.lock" start_supervisor; }
