/**
 * The part of Markdown that text panels support: headings, paragraphs, lists, code, bold, emphasis
 * and links to http and https. It is parsed to a tree, never to HTML.
 */

export type Inline =
  | { kind: "text" | "code"; text: string }
  | { kind: "strong" | "em"; of: Inline[] }
  | { kind: "link"; href: string; of: Inline[] };

export type Block =
  | { kind: "heading"; level: 2 | 3 | 4; of: Inline[] }
  | { kind: "paragraph"; of: Inline[] }
  | { kind: "list"; ordered: boolean; items: Inline[][] }
  | { kind: "code"; text: string };

/** The maximum number of characters that are parsed; the rest is not shown. */
const TEXT_MAX = 50_000;
const NESTED_MAX = 4;

export function blocksOf(markdown: string): Block[] {
  const lines = markdown.slice(0, TEXT_MAX).split(/\r?\n/);
  const blocks: Block[] = [];
  let paragraphLines: string[] = [];
  const endParagraph = () => {
    if (paragraphLines.length > 0)
      blocks.push({ kind: "paragraph", of: inlinesOf(paragraphLines.join("\n")) });
    paragraphLines = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const heading = /^(#{1,3})\s+(.*)$/.exec(line);
    const item = /^\s*([-*]|\d{1,3}\.)\s+(.*)$/.exec(line);
    if (line.startsWith("```")) {
      endParagraph();
      const end = lines.findIndex((other, index) => index > at && other.startsWith("```"));
      const upto = end === -1 ? lines.length : end;
      blocks.push({ kind: "code", text: lines.slice(at + 1, upto).join("\n") });
      at = upto;
    } else if (heading) {
      endParagraph();
      const level = Math.min((heading[1]?.length ?? 1) + 1, 4) as 2 | 3 | 4;
      blocks.push({ kind: "heading", level, of: inlinesOf(heading[2] ?? "") });
    } else if (item) {
      endParagraph();
      addItem(blocks, lines[at - 1], /^\d/.test(item[1] ?? ""), inlinesOf(item[2] ?? ""));
    } else if (line.trim() === "") {
      endParagraph();
    } else {
      paragraphLines.push(line);
    }
  }
  endParagraph();
  return blocks;
}

/** Adds an item to the list directly above it, or begins a list. */
function addItem(blocks: Block[], above: string | undefined, ordered: boolean, item: Inline[]) {
  const last = blocks.at(-1);
  const isContinued = last?.kind === "list" && last.ordered === ordered && above?.trim() !== "";
  if (isContinued) last.items.push(item);
  else blocks.push({ kind: "list", ordered, items: [item] });
}

const MARKS =
  /`([^`\n]{1,2000})`|\*\*([^*\n]{1,2000})\*\*|\*([^*\s][^*\n]{0,2000})\*|\[([^\]\n]{1,2000})\]\(([^)\s]{1,2000})\)/;

export function inlinesOf(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  let rest = text;
  for (;;) {
    const match = depth < NESTED_MAX ? MARKS.exec(rest) : null;
    if (!match) break;
    if (match.index > 0) found.push({ kind: "text", text: rest.slice(0, match.index) });
    found.push(marked(match, depth));
    rest = rest.slice(match.index + match[0].length);
  }
  if (rest !== "") found.push({ kind: "text", text: rest });
  return found;
}

function marked(match: RegExpExecArray, depth: number): Inline {
  const [whole, code, strong, em, label, href] = match;
  if (code !== undefined) return { kind: "code", text: code };
  if (strong !== undefined) return { kind: "strong", of: inlinesOf(strong, depth + 1) };
  if (em !== undefined) return { kind: "em", of: inlinesOf(em, depth + 1) };
  const safe = safeHref(href ?? "");
  if (!safe) return { kind: "text", text: whole };
  return { kind: "link", href: safe, of: inlinesOf(label ?? "", depth + 1) };
}

/** Permitted link targets: http and https only. */
export function safeHref(href: string): string | undefined {
  if (!/^https?:\/\//i.test(href)) return undefined;
  try {
    const url = new URL(href);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : undefined;
  } catch {
    return undefined;
  }
}
