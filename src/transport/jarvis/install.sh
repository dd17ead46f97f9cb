# Put a copy of JARVIS-CD in its place, and have JARVIS initialized. What stands before this: a_home, a_key, a_archive and a_wheel (digests of what was received;
# empty: nothing), a_python, a_program (install.py), layout.sh, python.sh.
main() {
  jarvis=$root/jarvis
  archive=${a_archive:+$jarvis/.incoming-$a_archive}
  wheel=${a_wheel:+$jarvis/.incoming-$a_wheel}
  said=$(with_setup "$a_python" -c "$a_program" "$jarvis" "$a_key" "$archive" "$wheel" 2>&1 </dev/null)
  status=$?
  rm -f ${archive:+"$archive"} ${wheel:+"$wheel"}
  last=$(printf '%s\n' "$said" | sed -n '$p')
  case $last in
    'refused '*)
      last=${last#refused }
      refuse "${last%% *}" "${last#* }"
      ;;
    'done '*) [ "$status" -eq 0 ] || refuse jarvis_fails "$last" ;;
    *) refuse jarvis_fails "${last:-it ended with $status}" ;;
  esac
  say program "$jarvis/$a_key/bin/jarvis"
  say initialized "${last#done }"
}
