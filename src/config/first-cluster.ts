/** What to do where no cluster is known yet. */
export const FIRST_CLUSTER =
  "clio-relay init makes one of this machine, clio-relay cluster add --name NAME --ssh-host HOST knows one elsewhere";
