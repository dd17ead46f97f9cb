/** Whoever listens is not the one whose address it was, or does not say so. Nothing was sent to it that is not for everybody. */
export class Unproven extends Error {}
