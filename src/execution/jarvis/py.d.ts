/** `import text from "./inspection.py" with { type: "text" }` */
declare module "*.py" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: a file that is imported as text is its own default export
  export default text;
}
