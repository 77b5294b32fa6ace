/** The senders, sorted by series, which shows the source of high cardinality, or by samples. */
import { useSignal } from "@preact/signals";
import { param, setParams } from "../../app/address";
import type { StatusAnswer } from "../../api/types";
import { Ago } from "../../parts/ago";
import { Table, type Column } from "../../parts/table";
import { countText, countWithNoun, percentText } from "../../model/words";
import { Meter } from "./meter";
import { sendersBy, shareOf, type SenderColumn } from "./shares";
import { sum } from "./rates";

const COLUMNS: { column: SenderColumn; name: string; isNumber: boolean }[] = [
  { column: "agent", name: "Sender", isNumber: false },
  { column: "series", name: "Series", isNumber: true },
  { column: "samples", name: "Samples", isNumber: true },
  { column: "heard", name: "Last batch", isNumber: true },
];

/** The number of senders listed at first. */
const FIRST = 12;

const by = param("senders", "series");

export function Senders({ senders }: { senders: StatusAnswer["senders"] }) {
  const column = COLUMNS.find(({ column }) => column === by.value)?.column ?? "series";
  const isWhole = useSignal(false);
  const listed = sendersBy(senders.top, column);
  const shown = isWhole.value ? listed : listed.slice(0, FIRST);
  const series = sum(senders.top.map((sender) => sender.series));
  const samples = sum(senders.top.map((sender) => sender.samples));
  const columns = COLUMNS.map(({ column: which, name, isNumber }): Column => {
    const direction = which === "agent" ? "ascending" : "descending";
    const onSort = () => setParams({ senders: which }, { replace: true });
    return { name, isNumber, sort: { direction, isActive: which === column, onSort } };
  });
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Senders</h2>
        <span class="muted num">
          {senders.top.length < senders.total
            ? `${senders.top.length} of ${countWithNoun(senders.total, "sender")}, by number of series`
            : countWithNoun(senders.total, "sender")}
        </span>
      </div>
      {listed.length === 0 ? (
        <p class="nothing">No senders yet.</p>
      ) : (
        <Table label="Senders" class="senders" columns={columns}>
          {shown.map((sender) => (
            <tr key={sender.agent}>
              <th scope="row">{sender.agent}</th>
              <ShareCell value={sender.series} whole={series} of="series" />
              <ShareCell value={sender.samples} whole={samples} of="samples" />
              <td class="num muted">
                {sender.heard === null ? "not known" : <Ago at={sender.heard} />}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {shown.length < listed.length && (
        <div class="card-foot">
          <button type="button" class="button small" onClick={() => (isWhole.value = true)}>
            Show all {listed.length}
          </button>
        </div>
      )}
    </section>
  );
}

function ShareCell({ value, whole, of }: { value: number; whole: number; of: string }) {
  const share = shareOf(value, whole);
  return (
    <td class="num share" title={`${percentText(share * 100)} of the ${of} of the listed senders`}>
      <span>{countText(value)}</span>
      <Meter share={share} plain />
    </td>
  );
}
