/** The nested form of a document, with the slot of each of its cells. Pure. */

export type Node =
  | { kind: "value"; name: string; text: string; slot: number; column: string }
  | {
      kind: "group";
      name: string;
      slot: number;
      summary: string;
      isEmptyCell: boolean;
      nodes: Node[];
    };

/** The deepest nesting that is walked; documents are not nested deeper. */
const DEPTH_MAX = 8;

/**
 * The tree of a nested document. Objects below `values` with an `n` are cells, in the order of the
 * document's slots.
 */
export function treeOf(nested: unknown): Node[] {
  let nextSlot = 0;
  const walk = (name: string, value: unknown, isValues: boolean, depth: number): Node => {
    if (typeof value !== "object" || value === null || depth > DEPTH_MAX) {
      return { kind: "value", name, text: textOf(value), slot: -1, column: "" };
    }
    const entries = Object.entries(value).sort(byNumber);
    const isCell = isValues && "n" in value;
    const slot = isCell ? nextSlot++ : -1;
    const nodes = entries.map(([key, inner]): Node =>
      isCell
        ? { kind: "value", name: key, text: textOf(inner), slot, column: key }
        : walk(key, inner, isValues || key === "values", depth + 1),
    );
    const isEmptyCell = isCell && value.n === 0;
    return { kind: "group", name, slot, nodes, isEmptyCell, summary: summaryOf(nodes, isCell) };
  };
  const root = walk("", nested, false, 0);
  return root.kind === "group" ? root.nodes : [];
}

/** Compares numeric names as numbers: "10" comes after "9". */
function byNumber([a]: [string, unknown], [b]: [string, unknown]): number {
  const areNumeric = /^\d+$/.test(a) && /^\d+$/.test(b);
  return areNumeric ? Number(a) - Number(b) : 0;
}

function summaryOf(nodes: Node[], isCell: boolean): string {
  if (!isCell) return `${nodes.length} ${nodes.length === 1 ? "field" : "fields"}`;
  return nodes
    .map((node) => (node.kind === "value" ? `${node.name}: ${node.text}` : node.name))
    .join(", ");
}

function textOf(value: unknown): string {
  if (typeof value === "number") return numberText(value);
  return JSON.stringify(value);
}

/** Returns the number as text; a fraction is rounded to 12 significant digits. */
export function numberText(value: number | null): string {
  if (value === null) return "not a finite number";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(12)));
}
