/*
 * What help says of options for things that no worker of this version does. They are known so that what was written for them is
 * understood, and refused or recorded as the text of each says.
 */

export const NO_ENGINE = "no worker of this version runs it";
export const NO_SCHEDULER = "no worker of this version runs a scheduler's jobs";
