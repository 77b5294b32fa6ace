/**
 * The nested form of a document, as BSON: groups open and close, and cells are linked to their
 * bytes.
 */
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { StoredDocument } from "./hex-layout";
import { point, useMarks } from "./marks";
import { treeOf, type Node } from "./tree-model";

export function TreeView({ document }: { document: StoredDocument }) {
  const nodes = useMemo(() => treeOf(document.nested), [document.nested]);
  const box = useRef<HTMLDivElement>(null);
  const isAllOpen = useSignal(false);
  const onPoint = useMarks(box);
  return (
    <section class="pane" aria-label="The document, nested">
      <div class="pane-head">
        <h3>Nested</h3>
        <button
          type="button"
          class="button small"
          onClick={() => (isAllOpen.value = !isAllOpen.value)}
        >
          {isAllOpen.value ? "Collapse all" : "Expand all"}
        </button>
      </div>
      <div
        ref={box}
        class="pane-body tree mono"
        onPointerOver={onPoint}
        onPointerLeave={() => point(undefined)}
        onFocusIn={onPoint}
        onFocusOut={() => point(undefined)}
      >
        {nodes.map((node) => (
          <TreeNode key={node.name} node={node} isOpen={isAllOpen.value} depth={0} />
        ))}
      </div>
    </section>
  );
}

function TreeNode({ node, isOpen, depth }: { node: Node; isOpen: boolean; depth: number }) {
  if (node.kind === "value") {
    const place = node.slot >= 0 ? { "data-slot": node.slot, "data-column": node.column } : {};
    return (
      <div class="leaf" {...place}>
        <span class="leaf-name">{node.name}</span>: <span class="leaf-value">{node.text}</span>
      </div>
    );
  }
  const isCell = node.slot >= 0;
  const place = isCell ? { "data-slot": node.slot } : {};
  return (
    <details
      class={node.isEmptyCell ? "branch empty-cell" : "branch"}
      open={isCell ? isOpen : depth < 2}
    >
      <summary {...place}>
        <span class="leaf-name">{node.name}</span>
        <span class="branch-summary">
          {"{ "}
          {node.summary}
          {" }"}
        </span>
      </summary>
      {node.nodes.map((inner) => (
        <TreeNode key={inner.name} node={inner} isOpen={isOpen} depth={depth + 1} />
      ))}
    </details>
  );
}
