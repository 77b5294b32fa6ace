/** Layout faults in the texts of a page. */

/**
 * Finds texts that overlap or are cut off, and a page that is too wide. Runs in the page.
 */
export function textProblems(): string[] {
  interface Piece {
    text: string;
    node: Node;
    element: Element;
    box: DOMRect;
  }
  const isSeen = (element: Element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    !element.closest(".hidden-text, .skip, noscript, svg, canvas");
  /**
   * The visible part of a box: its containers may cut it off, such as by an ellipsis or a scrolling
   * list.
   */
  const visiblePart = (element: Element, box: DOMRect): DOMRect => {
    let { left, top, right, bottom } = box;
    for (let ancestor: Element | null = element; ancestor; ancestor = ancestor.parentElement) {
      const { overflowX, overflowY, clipPath } = getComputedStyle(ancestor);
      if (clipPath !== "none") return new DOMRect();
      const bound = ancestor.getBoundingClientRect();
      if (overflowX !== "visible") {
        left = Math.max(left, bound.left);
        right = Math.min(right, bound.right);
      }
      if (overflowY !== "visible") {
        top = Math.max(top, bound.top);
        bottom = Math.min(bottom, bound.bottom);
      }
    }
    return new DOMRect(left, top, Math.max(right - left, 0), Math.max(bottom - top, 0));
  };
  const pieces: Piece[] = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (!element || !node.textContent?.trim() || !isSeen(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      const visibleBox = visiblePart(element, box);
      if (visibleBox.width < 2 || visibleBox.height < 4) continue;
      pieces.push({ text: node.textContent.trim(), node, element, box: visibleBox });
    }
  }
  const problems: string[] = [];
  const isFixed = (element: Element) => {
    for (let ancestor: Element | null = element; ancestor; ancestor = ancestor.parentElement) {
      if (["fixed", "sticky"].includes(getComputedStyle(ancestor).position)) return true;
    }
    return false;
  };
  const flowing = pieces.filter(({ element }) => !isFixed(element));
  flowing.forEach((a, k) => {
    for (const b of flowing.slice(k + 1)) {
      if (a.node === b.node) continue;
      const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (across > 2 && down > 4) problems.push(`"${a.text}" upon "${b.text}"`);
    }
  });
  for (const element of document.querySelectorAll("button, .place, th, td, label, h1, h2, h3")) {
    if (!isSeen(element) || !element.textContent.trim()) continue;
    const style = getComputedStyle(element);
    const isCut = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0;
    const isEllipsis = style.textOverflow === "ellipsis" || style.display === "inline";
    if (isCut && style.overflowX !== "visible" && !isEllipsis) {
      problems.push(`"${element.textContent.trim().slice(0, 40)}" is cut off`);
    }
  }
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) problems.push("the page is wider than the screen");
  return problems.slice(0, 10);
}
