import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "node_modules"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { project: ["./tsconfig.json", "./e2e/tsconfig.json"] } },
    rules: {
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
  // Playwright reads the used fixtures from the parameter pattern, which may be empty.
  { files: ["e2e/**"], rules: { "no-empty-pattern": "off" } },
  { files: ["*.js", "vite.config.ts"], extends: [tseslint.configs.disableTypeChecked] },
);
