# Take the bytes of a version from standard input, from an offset on. Two that write the same version at once write the same bytes at the same places, so
# this needs no lock. What stands before this: a_digest, a_home, a_block (bytes), a_skip (blocks), a_size (bytes).
main() {
  incoming=$versions/.incoming-$a_digest
  said=$(dd of="$incoming" ibs=65536 obs="$a_block" seek="$a_skip" conv=notrunc 2>&1)
  status=$?
  # Another run of the same version was faster, and has put it in its place.
  if [ ! -e "$incoming" ] && [ -f "$versions/$a_digest/clio-relay" ]; then
    say received "$a_size"
    return 0
  fi
  received=$(size_of "$incoming")
  say received "${received:-0}"
  if [ "$status" -eq 0 ] && [ "${received:-0}" -ge "$a_size" ]; then
    # To the disk, before a name says that it is there.
    dd if=/dev/null of="$incoming" conv=notrunc,fsync 2>/dev/null </dev/null
    return 0
  fi
  free=$(free_kib "$versions")
  if [ "$status" -ne 0 ] && [ "${free:-1024}" -lt 128 ]; then refuse no_room "$said"; fi
  # SIGXFSZ (25, signal(7)) ends dd without a word of its own.
  case $status in 153 | 281) said="the account may have no file of that size there (ulimit -f: $(ulimit -f) blocks)" ;; esac
  if [ "$status" -ne 0 ]; then refuse unwritable "${said:-dd ended with $status}"; fi
  refuse incomplete "$received of $a_size bytes"
}
