/** `import text from "./0001.sql" with { type: "text" }` */
declare module "*.sql" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: a file that is imported as text is its own default export
  export default text;
}
