/** Samples by protocol, and requests by their outcome. */
import type { StatusAnswer } from "../../api/types";
import { Empty } from "../../parts/states";
import { Table, numberColumns } from "../../parts/table";
import { countText } from "../../model/words";

interface Props {
  status: StatusAnswer;
  rates: Map<string, number> | null;
}

export function Ingest({ status, rates }: Props) {
  const protocols = [...status.protocols].sort((a, b) => b.accepted - a.accepted);
  const active = protocols.filter((p) => p.accepted + p.duplicate + p.refused > 0);
  const silent = protocols.filter((p) => p.accepted + p.duplicate + p.refused === 0);
  const outcomes = Object.entries(status.requests.outcomes)
    .filter(([, count]) => count > 0)
    .sort((a, b) => b[1] - a[1]);
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Ingest by protocol</h2>
      </div>
      {active.length === 0 ? (
        <Empty title="No samples yet">
          <p>No protocol has delivered a sample since the daemon started.</p>
        </Empty>
      ) : (
        <Table
          label="Ingest by protocol"
          class="ingest"
          columns={["Protocol", ...numberColumns("Samples/s", "Accepted", "Duplicate", "Refused")]}
        >
          {active.map((p) => (
            <tr key={p.protocol}>
              <th scope="row">{p.protocol}</th>
              <td class="num">{rates ? countText(rates.get(p.protocol) ?? 0) : "…"}</td>
              <td class="num">{countText(p.accepted)}</td>
              <td class="num">{countText(p.duplicate)}</td>
              <td class={p.refused > 0 ? "num warn" : "num"}>{countText(p.refused)}</td>
            </tr>
          ))}
        </Table>
      )}
      <div class="card-foot muted">
        {silent.length > 0 && (
          <p>No samples by {silent.map(({ protocol }) => protocol).join(", ")}.</p>
        )}
        {outcomes.length > 0 && (
          <p class="num">
            Requests:{" "}
            {outcomes.map(([outcome, count]) => `${countText(count)} ${outcome}`).join(", ")}.
          </p>
        )}
      </div>
    </section>
  );
}
