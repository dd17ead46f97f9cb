#compdef clio-relay
# clio-relay in zsh: what `clio-relay completion zsh` prints. Each answer is that of the program itself; nothing of it is ever evaluated.
_clio-relay() {
  local -a answer values shown expl
  local line at
  answer=("${(@f)$(command clio-relay __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
  case $answer[1] in
    files*|directories)
      compset -P 1 '--*='
      [[ $answer[1] != *named ]] || compset -P 1 '*='
      if [[ $answer[1] == files* ]]; then _files; else _files -/; fi
      ;;
    command)
      at=${words[(ie)--]}
      shift $at words
      ((CURRENT -= at))
      _normal
      ;;
    *)
      for line in "${(@)answer[2,-1]}"; do
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
      done
      _wanted -V values expl value compadd -l -d shown -a values
      ;;
  esac
}
if [[ $funcstack[1] == _clio-relay ]]; then _clio-relay "$@"; else compdef _clio-relay clio-relay; fi
