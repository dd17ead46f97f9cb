/** `import text from "./frame.sh" with { type: "text" }` */
declare module "*.sh" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: a file that is imported as text is its own default export
  export default text;
}
