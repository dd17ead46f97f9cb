/** Identifier grammar shared by every record and by the names of clusters: lower case, digits, `_` and `-`, at most 128 characters. */
export const ID_PATTERN = /^[a-z0-9][a-z0-9_-]{0,127}$/;

const WINDOWS_DEVICE_NAME = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])$/;

/** Windows opens a device for these, in whatever directory; identifiers become file names. */
export const isDeviceName = (text: string): boolean => WINDOWS_DEVICE_NAME.test(text);

/** Whether a text can be an identifier; for those who load no schemas. */
export const isId = (text: string): boolean => ID_PATTERN.test(text) && !isDeviceName(text);

/** What a scheduler calls one of its jobs, with a step or an element of an array where somebody means one: nothing that would be read as an option. */
export const SCHEDULER_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_.+[\]-]{0,127}$/;
