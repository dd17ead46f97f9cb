/** `import script from "./script.zsh" with { type: "text" }` */
declare module "*.bash" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: a file that is imported as text is its own default export
  export default text;
}
declare module "*.zsh" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: a file that is imported as text is its own default export
  export default text;
}
declare module "*.fish" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: a file that is imported as text is its own default export
  export default text;
}
