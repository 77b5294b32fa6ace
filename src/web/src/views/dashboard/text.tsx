/** The text of a panel, as elements: the text is never parsed as HTML. */
import type { ComponentChildren } from "preact";
import { blocksOf, type Block, type Inline } from "./markdown";

export function Text({ text }: { text: string }) {
  return <div class="prose">{blocksOf(text).map(blockOf)}</div>;
}

function blockOf(block: Block, at: number): ComponentChildren {
  switch (block.kind) {
    case "heading": {
      const Heading = `h${block.level}` as const;
      return <Heading key={at}>{block.of.map(inlineOf)}</Heading>;
    }
    case "paragraph":
      return <p key={at}>{block.of.map(inlineOf)}</p>;
    case "code":
      return (
        <pre key={at} tabIndex={0}>
          <code>{block.text}</code>
        </pre>
      );
    case "list": {
      const List = block.ordered ? "ol" : "ul";
      return (
        <List key={at}>
          {block.items.map((item, index) => (
            <li key={index}>{item.map(inlineOf)}</li>
          ))}
        </List>
      );
    }
  }
}

function inlineOf(part: Inline, at: number): ComponentChildren {
  switch (part.kind) {
    case "text":
      return part.text;
    case "code":
      return <code key={at}>{part.text}</code>;
    case "strong":
      return <strong key={at}>{part.of.map(inlineOf)}</strong>;
    case "em":
      return <em key={at}>{part.of.map(inlineOf)}</em>;
    case "link":
      return (
        <a key={at} href={part.href} target="_blank" rel="noopener noreferrer">
          {part.of.map(inlineOf)}
        </a>
      );
  }
}
