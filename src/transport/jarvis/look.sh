# Say with what JARVIS-CD would run here, and whether that copy of it is there. What stands before this: a_home, a_key, layout.sh, python.sh.
main() {
  python=$(python_here)
  [ -n "$python" ] || refuse python_missing "$(with_setup python3 --version 2>&1 | sed 1q)"
  say python "$python"
  if [ -x "$root/jarvis/$a_key/bin/jarvis" ]; then say there yes; else say there no; fi
}
