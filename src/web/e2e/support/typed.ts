/**
 * Checks the daemon's answers against the types of src/api/types. Each answer is written as a
 * literal of its type, so that TypeScript's own checker rejects unknown, absent and mistyped
 * fields. Each field of the types must be in some answer, so that the types contain no field that
 * the daemon removed.
 */
import { join } from "node:path";
import ts from "typescript";
import { api } from "../../src/api/client";

/** A value, and its type on the page. */
interface Typed {
  type: string;
  value: unknown;
}

const ROOT = join(import.meta.dirname, "../..");
const FILE = join(ROOT, "src/api/answers.ts");
const TYPES = join(ROOT, "src/api/types/");
const HEAD = 'import type * as t from "./types";\nimport type { api } from "./client";\n';

/**
 * The page's client. It records the arguments and the last answer of each call, by the call's name.
 */
export function recordingApi(values: Map<string, Typed>): typeof api {
  const recordCalls = (name: string, call: (...args: unknown[]) => Promise<unknown>) => {
    const type = `(typeof api)["${name}"]`;
    return async (...args: unknown[]) => {
      const key = `${name} ${JSON.stringify(args)}`;
      values.set(`ask ${key}`, { type: `Parameters<${type}>`, value: args });
      const value = await call(...args);
      values.set(key, { type: `Awaited<ReturnType<${type}>>`, value });
      return value;
    };
  };
  const calls = Object.entries(api).map(([name, call]) => [name, recordCalls(name, call as never)]);
  return Object.fromEntries(calls) as typeof api;
}

/** Returns the differences between values and types, and the fields that no value has. */
export function typeFaults(values: readonly Typed[]): string[] {
  const lines = values.map(({ type, value }, index) => {
    const literal = value === undefined ? "undefined" : JSON.stringify(value);
    return `export const value${index}: ${type} = ${literal};\n`;
  });
  const { program, file } = programWith(HEAD + lines.join(""));
  const mismatches = program.getSemanticDiagnostics(file).map(({ messageText, start = 0 }) => {
    const line = file.getLineAndCharacterOfPosition(start).line;
    const { type } = values[line - HEAD.split("\n").length + 1] ?? { type: "?" };
    return `${type}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`;
  });
  return [...mismatches, ...fieldsWithoutValue(program, file)];
}

function programWith(text: string): { program: ts.Program; file: ts.SourceFile } {
  const config = ts.readConfigFile(join(ROOT, "tsconfig.json"), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, ROOT);
  const host = ts.createCompilerHost(options);
  const readSource = host.getSourceFile.bind(host);
  host.getSourceFile = (path, version, ...rest) =>
    path === FILE ? ts.createSourceFile(path, text, version) : readSource(path, version, ...rest);
  const program = ts.createProgram([FILE], options, host);
  const file = program.getSourceFile(FILE);
  if (!file) throw new Error("the values were not read");
  return { program, file };
}

/** Returns the fields of the types that no value has. */
function fieldsWithoutValue(program: ts.Program, values: ts.SourceFile): string[] {
  const checker = program.getTypeChecker();
  const seenFields = new Set<ts.Node>();
  const visit = (node: ts.Node) => {
    if (ts.isObjectLiteralExpression(node)) {
      const names = node.properties.flatMap(({ name }) =>
        name && ts.isStringLiteral(name) ? [name.text] : [],
      );
      const fields = typesOf(checker, node).flatMap((type) =>
        names.map((name) => type.getProperty(name)),
      );
      for (const field of fields)
        for (const declaration of field?.declarations ?? []) seenFields.add(declaration);
    }
    ts.forEachChild(node, visit);
  };
  visit(values);
  const absent: string[] = [];
  const collectAbsent = (node: ts.Node) => {
    if (ts.isPropertySignature(node) && !seenFields.has(node)) {
      const parent = ts.isInterfaceDeclaration(node.parent) ? node.parent.name.text : "";
      absent.push(`no answer has ${parent}.${node.name.getText()}`);
    }
    ts.forEachChild(node, collectAbsent);
  };
  for (const file of program.getSourceFiles())
    if (file.fileName.startsWith(TYPES)) collectAbsent(file);
  return absent;
}

/** Returns the expected types of an object; of a union, the members that the object fits. */
function typesOf(checker: ts.TypeChecker, node: ts.ObjectLiteralExpression): readonly ts.Type[] {
  const expected = checker.getContextualType(node);
  if (!expected?.isUnion()) return expected ? [expected] : [];
  const literalType = checker.getTypeAtLocation(node);
  return expected.types.filter((type) => checker.isTypeAssignableTo(literalType, type));
}
