/** The faults of a text; each leads to its line. */
import type { TextFault } from "../../api/types";
import { countWithNoun } from "../../model/words";

/** A fault and its line, from 1. */
export interface PlacedFault extends TextFault {
  at: number | undefined;
}

interface Props {
  faults: readonly PlacedFault[];
  onJump: (line: number) => void;
}

export function Faults({ faults, onJump }: Props) {
  if (faults.length === 0) return null;
  return (
    <section class="text-faults" aria-label={countWithNoun(faults.length, "fault")}>
      <ul>
        {faults.map((fault, k) => (
          <li key={k}>
            <Fault fault={fault} onJump={onJump} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Fault({ fault, onJump }: { fault: PlacedFault; onJump: (line: number) => void }) {
  const { at, location, problem } = fault;
  const content = (
    <>
      {at !== undefined && <span class="num text-fault-line">Line {at}</span>}
      <span class="text-fault-what">
        {location !== "" && <span class="muted">{location}: </span>}
        {problem}
      </span>
    </>
  );
  if (at === undefined) return <p class="text-fault">{content}</p>;
  return (
    <button type="button" class="text-fault" onClick={() => onJump(at)}>
      {content}
    </button>
  );
}
