# Take a file from standard input, and keep it when it is whole. What stands before this: a_home, a_digest, layout.sh, take.sh.
main() {
  said=$(mkdir -p "$root/jarvis" 2>&1) || refuse unwritable "$said"
  # What was cut a day ago is of no use any more.
  find "$root/jarvis" -maxdepth 1 \( -name '.incoming-*' -o -name '.place-*' \) -mtime +0 -exec rm -rf {} + 2>/dev/null
  incoming=$root/jarvis/.incoming-$a_digest
  take "$incoming.$$" "$a_digest"
  mv -f "$incoming.$$" "$incoming" || refuse unwritable "$incoming"
}
